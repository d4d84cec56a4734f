/** Names of actions in the audit log. Each has a text for the console (`../web/operator/audit-words.ts`). */
export type AuditAction =
	| `account.${"adjust" | "alert" | "billing_details" | "create" | "price" | "rename" | "suspend" | "terms" | "time_zone" | "unsuspend" | "view"}`
	| `adjustment.${"ask" | "reject"}`
	| `auto_topup.${"off" | "save"}`
	| `batch.${"notices" | "webhook_secret"}`
	| `card.${"add" | "remove"}`
	| `company.${"remove" | "set" | "verify"}`
	| `key.${"create" | "revoke" | "rotate" | "update"}`
	| "ledger.reconcile"
	| `management_key.${"create" | "revoke"}`
	| `member.${"invite" | "join" | "remove" | "role" | "uninvite"}`
	| "notice.replay"
	| `operator.${"create" | "revoke"}`
	| `passkey.${"add" | "remove"}`
	| "payment.close"
	| `project.${"archive" | "create" | "member_add" | "member_remove" | "update"}`
	| `stripe.${StripeEvent}`
	| `topup.${"cancel" | "confirm" | "create" | "look" | "reject"}`;

/** Events of Stripe that may change something in this service. */
export type StripeEvent =
	| `checkout.session.${"async_payment_failed" | "async_payment_succeeded" | "completed" | "expired"}`
	| `payment_intent.${"canceled" | "payment_failed" | "requires_action" | "succeeded"}`
	| "charge.refunded"
	| `charge.dispute.${"closed" | "created" | "funds_reinstated" | "funds_withdrawn" | "updated"}`;
