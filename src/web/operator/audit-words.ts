import type { AuditAction } from "../../ops/audit-action.ts";
import { t } from "../texts.tsx";

export const AUDIT_WORDS: Readonly<Record<AuditAction, string>> = {
	"account.adjust": t("Credit adjusted"),
	"account.alert": t("Low-credit alert set"),
	"account.billing_details": t("Billing details changed"),
	"account.create": t("Account created"),
	"account.price": t("Prices agreed on"),
	"account.rename": t("Account renamed"),
	"account.suspend": t("Account suspended"),
	"account.terms": t("Tags or token limit changed"),
	"account.time_zone": t("Time zone changed"),
	"account.view": t("Account viewed as customer"),
	"account.unsuspend": t("Suspension lifted"),
	"adjustment.ask": t("Adjustment proposed"),
	"adjustment.reject": t("Adjustment rejected"),
	"auto_topup.off": t("Automatic top-ups switched off"),
	"auto_topup.save": t("Automatic top-ups changed"),
	"batch.notices": t("Notifications changed"),
	"batch.webhook_secret": t("Webhook secret renewed"),
	"card.add": t("Card setup started"),
	"card.remove": t("Card removed"),
	"company.remove": t("Single sign-on removed"),
	"company.set": t("Single sign-on changed"),
	"company.verify": t("Company domain verified"),
	"key.create": t("Key created"),
	"key.revoke": t("Key revoked"),
	"key.rotate": t("Key rotated"),
	"key.update": t("Key changed"),
	"ledger.reconcile": t("Ledger checked"),
	"management_key.create": t("Management key created"),
	"management_key.revoke": t("Management key revoked"),
	"member.invite": t("Member invited"),
	"member.join": t("Member joined"),
	"member.remove": t("Member removed"),
	"member.role": t("Role changed"),
	"member.uninvite": t("Invitation withdrawn"),
	"notice.replay": t("Notification sent again"),
	"operator.create": t("Operator added"),
	"operator.revoke": t("Operator removed"),
	"passkey.add": t("Passkey added"),
	"passkey.remove": t("Passkey removed"),
	"payment.close": t("Payment difference closed"),
	"project.archive": t("Project archived"),
	"project.create": t("Project created"),
	"project.member_add": t("Member added to a project"),
	"project.member_remove": t("Member removed from a project"),
	"project.update": t("Project changed"),
	"stripe.charge.dispute.closed": t("Dispute closed"),
	"stripe.charge.dispute.created": t("Dispute opened"),
	"stripe.charge.dispute.funds_reinstated": t("Disputed amount returned"),
	"stripe.charge.dispute.funds_withdrawn": t("Disputed amount withdrawn"),
	"stripe.charge.dispute.updated": t("Dispute changed"),
	"stripe.charge.refunded": t("Payment refunded"),
	"stripe.checkout.session.async_payment_failed": t("Delayed payment failed"),
	"stripe.checkout.session.async_payment_succeeded": t("Delayed payment arrived"),
	"stripe.checkout.session.completed": t("Payment page completed"),
	"stripe.checkout.session.expired": t("Payment page expired"),
	"stripe.payment_intent.canceled": t("Payment cancelled"),
	"stripe.payment_intent.payment_failed": t("Payment failed"),
	"stripe.payment_intent.requires_action": t("Payment needs confirmation"),
	"stripe.payment_intent.succeeded": t("Payment succeeded"),
	"topup.cancel": t("Top-up cancelled"),
	"topup.confirm": t("Top-up confirmed"),
	"topup.create": t("Top-up requested"),
	"topup.look": t("First review of a top-up"),
	"topup.reject": t("Top-up rejected"),
};

/** Labels of actors that are not people. */
const ACTORS: Readonly<Record<string, string>> = { cli: t("Command line"), stripe: "Stripe" };

/** Label of an audited action. An action that this version does not know is shown as its code. */
export const actText = (action: string): string =>
	(AUDIT_WORDS as Readonly<Record<string, string | undefined>>)[action] ?? action;

export const actorText = ({ actor, actorEmail }: { actor: string; actorEmail: string | null }): string =>
	actorEmail ?? ACTORS[actor] ?? actor;
