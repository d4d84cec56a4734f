/** Why automatic top-ups stopped, as shown to people. Stripe's own texts are not shown. */
export const STOP_REASONS = {
	declined: "The card was declined.",
	funds: "The card was declined: its funds or its limit do not cover the payment.",
	expired: "The card has expired.",
	card_gone: "The card is not known to the payment service any more.",
	authentication: "The bank wants the payment to be confirmed by its cardholder.",
	changed: "The settings, the card or the account's state were changed before anything was charged.",
	unanswered: "The payment service could not be reached. Nothing was charged.",
	undecided: "The bank has not decided about a payment for two days. No other is tried until it has.",
	refunded: "A card payment of this account was refunded.",
	disputed: "A card payment of this account is disputed.",
	uncredited: "The card was charged and no credit could be given for it. The operator has been alarmed.",
} as const;

export type StopReason = keyof typeof STOP_REASONS;

/** By the codes of a failed payment. */
export function stopReasonOf(failure: { code?: string; decline_code?: string } | null): StopReason {
	const { code, decline_code: declineCode } = failure ?? {};
	if (code === "authentication_required" || declineCode === "authentication_required") return "authentication";
	if (code === "payment_intent_authentication_failure") return "authentication";
	if (code === "expired_card" || declineCode === "expired_card") return "expired";
	if (declineCode === "insufficient_funds" || declineCode === "card_velocity_exceeded") return "funds";
	if (code === "resource_missing" || code === "payment_method_unexpected_state") return "card_gone";
	return "declined";
}
