/** Why automatic top-ups stopped, as texts for customers. They replace Stripe's own texts, which are not shown. */
export const STOP_REASONS = {
	declined: "The card was declined.",
	funds: "The card was declined: its funds or its limit do not cover the payment.",
	expired: "The card has expired.",
	card_gone: "The card is no longer saved at the payment provider.",
	authentication: "The bank requires the cardholder to confirm the payment.",
	changed: "The settings, the card or the account changed before the charge. Nothing was charged.",
	unanswered: "The payment provider could not be reached. Nothing was charged.",
	undecided: "The bank has held a payment for two days. No other payment is tried until the bank decides.",
	refunded: "A card payment of this account was refunded.",
	disputed: "A card payment of this account is disputed.",
	uncredited: "The card was charged, but the credit could not be added. The operator has been notified.",
} as const;

export type AutoTopUpStopReason = keyof typeof STOP_REASONS;

/** The reason for a failed payment, by Stripe's error codes. */
export function stopReasonForFailure(failure: { code?: string; decline_code?: string } | null): AutoTopUpStopReason {
	const { code, decline_code: declineCode } = failure ?? {};
	if (code === "authentication_required" || declineCode === "authentication_required") return "authentication";
	if (code === "payment_intent_authentication_failure") return "authentication";
	if (code === "expired_card" || declineCode === "expired_card") return "expired";
	if (declineCode === "insufficient_funds" || declineCode === "card_velocity_exceeded") return "funds";
	if (code === "resource_missing" || code === "payment_method_unexpected_state") return "card_gone";
	return "declined";
}
