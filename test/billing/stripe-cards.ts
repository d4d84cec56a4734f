/**
 * Stripe's HTTP interface for saved cards, as strict as Stripe: it refuses unknown parameters, a reused Idempotency-Key
 * with other parameters, and calls in a wrong state. The first answer to a key is final, including errors; a payment is
 * charged once.
 */
type Json = Record<string, unknown>;

export type CardNature = "good" | "declined" | "funds" | "authentication" | "action" | "processing";

export interface PlayedCard {
	readonly id: string;
	customer: string | null;
	nature: CardNature;
}

export interface PlayedIntent {
	readonly id: string;
	readonly object: "payment_intent";
	readonly customer: string;
	readonly amount: number;
	readonly currency: string;
	readonly created: number;
	readonly metadata: Record<string, string>;
	payment_method: string | null;
	status:
		| "requires_confirmation"
		| "requires_payment_method"
		| "requires_action"
		| "processing"
		| "succeeded"
		| "canceled";
	amount_received: number;
	last_payment_error: Json | null;
}

/** How a request fails: refused without effect, unanswered after its effect, or never answered. */
export type Mishap = "error" | "kept error" | "lost" | "busy" | "hang" | undefined;

const FIELDS: Record<string, RegExp> = {
	"/v1/customers": /^(email|metadata\[account\])$/,
	"/v1/payment_intents":
		/^(amount|currency|customer|payment_method|allowed_payment_method_types\[0\]|metadata\[(top_up|account|attempt)\])$/,
	confirm: /^off_session$/,
	cancel: /^$/,
	detach: /^$/,
};

const failed = (status: number, error: Json) => ({ status, body: { error } });
const refused = (code: string, status = 400) => failed(status, { type: "invalid_request_error", code, message: code });
/** Largest amount that Stripe accepts, in cents: eight digits. */
export const CENTS_MAX = 99_999_999;
const MISSING = refused("resource_missing", 404);

export function createPlayedCards() {
	const cards = new Map<string, PlayedCard>();
	const intents: PlayedIntent[] = [];
	const customers = new Set<string>();
	/** Payment ids of all charges made, in order. */
	const charged: string[] = [];
	const answers = new Map<string, { params: string; reply: { status: number; body: Json } | undefined }>();
	const seen: string[] = [];
	let mishap: (request: string) => Mishap = () => undefined;

	function confirm(intent: PlayedIntent, fields: URLSearchParams) {
		if (fields.get("off_session") !== "true") return refused("parameter_missing");
		if (intent.status !== "requires_confirmation" && intent.status !== "requires_payment_method")
			return refused("payment_intent_unexpected_state");
		const card = cards.get(intent.payment_method ?? "");
		if (card === undefined || card.customer !== intent.customer) return refused("payment_method_unexpected_state");
		if (card.nature === "good") {
			intent.status = "succeeded";
			intent.amount_received = intent.amount;
			charged.push(intent.id);
			return { status: 200, body: { ...intent } };
		}
		if (card.nature === "action" || card.nature === "processing") {
			intent.status = card.nature === "action" ? "requires_action" : "processing";
			return { status: 200, body: { ...intent } };
		}
		const code = card.nature === "authentication" ? "authentication_required" : "card_declined";
		const decline = {
			funds: "insufficient_funds",
			authentication: "authentication_required",
			declined: "do_not_honor",
		};
		intent.status = "requires_payment_method";
		intent.last_payment_error = { type: "card_error", code, decline_code: decline[card.nature] };
		return failed(402, {
			...intent.last_payment_error,
			message: "secret words of the bank",
			payment_intent: { ...intent },
		});
	}

	function act(path: string, fields: URLSearchParams) {
		const [, , kind = "", id = "", verb] = path.split("/");
		const pattern = FIELDS[verb ?? path];
		if (pattern === undefined) return MISSING;
		for (const name of fields.keys()) if (!pattern.test(name)) return refused("parameter_unknown");
		if (path === "/v1/customers") {
			const made = `cus_${crypto.randomUUID()}`;
			customers.add(made);
			return { status: 200, body: { id: made, object: "customer" } };
		}
		if (path === "/v1/payment_intents") {
			const customer = fields.get("customer") ?? "";
			const card = cards.get(fields.get("payment_method") ?? "");
			if (!customers.has(customer) || card === undefined || card.customer !== customer) return MISSING;
			if (Number(fields.get("amount")) > CENTS_MAX) return refused("amount_too_large");
			const metadata = Object.fromEntries(
				[...fields].flatMap(([name, value]) => {
					const key = /^metadata\[(.*)\]$/.exec(name)?.[1];
					return key === undefined ? [] : [[key, value]];
				}),
			);
			const intent: PlayedIntent = {
				...{ id: `pi_${crypto.randomUUID()}`, object: "payment_intent", customer, payment_method: card.id, metadata },
				...{ amount: Number(fields.get("amount")), currency: fields.get("currency") ?? "", amount_received: 0 },
				...{ created: Math.floor(Date.now() / 1000), status: "requires_confirmation", last_payment_error: null },
			};
			intents.unshift(intent);
			return { status: 200, body: { ...intent } };
		}
		if (kind === "payment_methods") {
			const card = cards.get(id);
			if (card === undefined || card.customer === null) return MISSING;
			card.customer = null;
			return { status: 200, body: { id, object: "payment_method" } };
		}
		const intent = intents.find((one) => one.id === id);
		if (intent === undefined) return MISSING;
		if (verb === "confirm") return confirm(intent, fields);
		if (intent.status === "succeeded" || intent.status === "processing" || intent.status === "canceled")
			return refused("payment_intent_unexpected_state");
		intent.status = "canceled";
		// Omits the reason of a failure, as Stripe may do later, so the service must have stored it.
		intent.last_payment_error = null;
		return { status: 200, body: { ...intent } };
	}

	/** Answers requests about saved cards; undefined for all other requests. */
	async function answer(request: Request): Promise<Response | undefined> {
		const { pathname } = new URL(request.url);
		if (!/^\/v1\/(customers|payment_intents|payment_methods)(\/|$)/.test(pathname)) return undefined;
		if (request.method === "GET") {
			const id = pathname.split("/")[3];
			if (id === undefined) return undefined;
			seen.push("GET payment_intents");
			const how = mishap("GET payment_intents");
			if (how !== undefined && how !== "lost") return mishapReply(how);
			const intent = intents.find((one) => one.id === id);
			return reply(intent === undefined ? MISSING : { status: 200, body: { ...intent } });
		}
		const text = await request.text();
		const name = pathname.split("/").at(pathname.split("/").length > 4 ? -1 : 2) ?? "";
		seen.push(name);
		const how = mishap(name);
		const key = request.headers.get("idempotency-key") ?? "";
		const before = answers.get(key);
		if (before !== undefined) {
			if (before.params !== `${pathname} ${text}`)
				return reply(failed(400, { type: "idempotency_error", message: "other parameters" }));
			return reply(before.reply ?? refused("idempotency_key_in_use", 409));
		}
		if (how === "error" || how === "busy" || how === "hang") return mishapReply(how);
		const kept = { params: `${pathname} ${text}`, reply: undefined as { status: number; body: Json } | undefined };
		answers.set(key, kept);
		kept.reply =
			how === "kept error"
				? failed(500, { type: "api_error", message: "secret" })
				: act(pathname, new URLSearchParams(text));
		// A request that is refused because of its parameters does not use up its idempotency key.
		if (kept.reply.status === 400 || kept.reply.status === 404) answers.delete(key);
		return how === "lost" ? mishapReply("error") : reply(kept.reply);
	}

	return {
		answer,
		intents,
		charged,
		/** All requests in order, named `payment_intents`, `confirm`, `cancel`, … */
		seen,
		customers,
		/** Sets how later requests fail. */
		upset(how: (request: string) => Mishap = () => undefined) {
			mishap = how;
		},
		card(customer: string, nature: CardNature = "good"): PlayedCard {
			customers.add(customer);
			const card: PlayedCard = { id: `pm_${crypto.randomUUID()}`, customer, nature };
			cards.set(card.id, card);
			return card;
		},
		/** Forgets all idempotency keys, as Stripe does after a day. */
		forgetKeys: () => answers.clear(),
	};
}

/** Header that disables the client's retries. */
const NO_REPEAT = { "stripe-should-retry": "false" };

function reply({ status, body }: { status: number; body: Json }): Response {
	return Response.json(body, { status, headers: NO_REPEAT });
}

function mishapReply(
	how: Exclude<Mishap, undefined | "lost" | "kept error"> | "kept error",
): Response | Promise<Response> {
	if (how === "hang") return new Promise<never>(() => {});
	if (how === "busy") return reply(failed(429, { type: "rate_limit_error", message: "secret" }));
	return reply(failed(500, { type: "api_error", message: "secret" }));
}
