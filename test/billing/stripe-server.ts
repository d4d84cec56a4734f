import type { Server } from "bun";
import Stripe from "stripe";
import { CENTS_MAX, createPlayedCards, type PlayedCard } from "./stripe-cards.ts";

export interface OpenedPage {
	readonly id: string;
	readonly topUpId: string;
	readonly amount: number;
	readonly idempotencyKey: string;
	readonly fields: URLSearchParams;
}

type StripeObject = { readonly id: string; readonly created?: number } & Readonly<Record<string, unknown>>;

/** How slowly Stripe answers: not at all (unless the test sets another answer), late, or byte by byte. */
export type Slowness = "hang" | "late" | "trickle" | undefined;

type Lie = Response | undefined;

const TRICKLE_MS = 50;

function trickled(text: string, { status, headers }: Response): Response {
	const bytes = new TextEncoder().encode(text);
	let at = 0;
	const body = new ReadableStream<Uint8Array>({
		async pull(controller) {
			await Bun.sleep(TRICKLE_MS);
			if (at === bytes.length) controller.close();
			else controller.enqueue(bytes.subarray(at, ++at));
		},
	});
	return new Response(body, { status, headers });
}

/** Objects per page of a list: few, so that tests need several pages. */
const PAGE_MAX = 2;

/** Answers with one object, or with a filtered page of a list. */
function listed(objects: readonly StripeObject[], id: string | undefined, query: URLSearchParams): Response {
	if (id !== undefined) {
		const found = objects.find((object) => object.id === id);
		const missing = { error: { type: "invalid_request_error", code: "resource_missing", message: "No such object" } };
		return found === undefined ? Response.json(missing, { status: 404 }) : Response.json(found);
	}
	const since = Number(query.get("created[gte]") ?? 0);
	const payment = query.get("payment_intent");
	const status = query.get("status");
	const kept = objects.filter(
		(object) =>
			(object.created ?? Date.now() / 1000) >= since &&
			(payment === null || object.payment_intent === payment) &&
			(status === null || object.status === status),
	);
	const after = query.get("starting_after");
	const from = after === null ? 0 : kept.findIndex((object) => object.id === after) + 1;
	const data = kept.slice(from, from + PAGE_MAX);
	return Response.json({ object: "list", data, has_more: from + PAGE_MAX < kept.length, url: "" });
}

/**
 * Simulates Stripe's HTTP interface for payment pages. `withPages` serves the page on which people pay at another host
 * name, so that browsers treat it as another site.
 */
export function startStripe({ withPages = false } = {}) {
	const pages: OpenedPage[] = [];
	const expired = new Set<string>();
	const paid = new Set<string>();
	/** Contents of the lists, newest first, which tests set. */
	const held: Record<
		"checkout/sessions" | "refunds" | "disputes" | "payment_intents" | "balance_transactions",
		StripeObject[]
	> = { "checkout/sessions": [], payment_intents: [], refunds: [], disputes: [], balance_transactions: [] };
	const cards = createPlayedCards();
	/** Cards that customers entered, by page id. */
	const given = new Map<string, Record<string, unknown>>();
	let meanwhile = async () => {};
	let failing = false;
	let lie: (request: Request) => Lie | Promise<Lie> = () => undefined;
	let slowness: (request: string) => Slowness = () => undefined;
	let quick = Promise.withResolvers<void>();
	const server: Server<undefined> = Bun.serve({
		port: 0,
		async fetch(request) {
			const how = slowness(`${request.method} ${request.url} ${await request.clone().text()}`);
			if (how === "hang") return new Promise<never>(() => {});
			const late = quick.promise;
			const answer = (await lie(request.clone())) ?? (await play(request));
			if (how === "late") await late;
			return how === "trickle" ? trickled(await answer.text(), answer) : answer;
		},
	});
	async function play(request: Request): Promise<Response> {
		const { pathname } = new URL(request.url);
		const opened = pages.find(({ id }) => pathname === `/pay/${id}`);
		if (opened !== undefined) return paymentPage(opened);
		if (failing)
			return Response.json({ error: { type: "api_error", message: "secret detail sk_test_leak" } }, { status: 500 });
		if (request.headers.get("authorization") !== "Bearer sk_test_local") return new Response(null, { status: 401 });
		const played = await cards.answer(request);
		if (played !== undefined) return played;
		const [, visited = ""] = /^\/v1\/checkout\/sessions\/([^/]+)$/.exec(pathname) ?? [];
		const page = pages.find(({ id }) => id === visited);
		if (request.method === "GET" && page !== undefined && !held["checkout/sessions"].some(({ id }) => id === visited)) {
			await meanwhile();
			return Response.json({
				...{ id: visited, object: "checkout.session", mode: page.fields.get("mode") },
				status: paid.has(visited) ? "complete" : expired.has(visited) ? "expired" : "open",
				...{ customer: page.fields.get("customer"), ...given.get(visited) },
			});
		}
		const list =
			/^\/v1\/(checkout\/sessions|refunds|disputes|payment_intents|balance_transactions)(?:\/([^/]+))?$/.exec(pathname);
		if (request.method === "GET" && list !== null)
			return listed(held[list[1] as keyof typeof held], list[2], new URL(request.url).searchParams);
		if (request.method === "POST" && pathname === "/v1/checkout/sessions") {
			const fields = new URLSearchParams(await request.text());
			if (Number(fields.get("line_items[0][price_data][unit_amount]")) > CENTS_MAX)
				return Response.json({ error: { type: "invalid_request_error", code: "amount_too_large" } }, { status: 400 });
			const idempotencyKey = request.headers.get("idempotency-key") ?? "";
			let page = pages.find((one) => one.idempotencyKey === idempotencyKey);
			if (page === undefined) {
				page = {
					id: `cs_test_${crypto.randomUUID()}`,
					topUpId: fields.get("client_reference_id") ?? "",
					amount: Number(fields.get("line_items[0][price_data][unit_amount]")),
					idempotencyKey,
					fields,
				};
				pages.push(page);
			} else if (page.fields.toString() !== fields.toString()) {
				return Response.json({ error: { type: "idempotency_error", message: "other parameters" } }, { status: 400 });
			}
			const address = withPages ? `http://localhost:${server.port}/pay` : "https://pay.example";
			return Response.json({ id: page.id, object: "checkout.session", url: `${address}/${page.id}` });
		}
		const id = /^\/v1\/checkout\/sessions\/([^/]+)\/expire$/.exec(pathname)?.[1];
		if (request.method === "POST" && id !== undefined) {
			// As at Stripe, a page can be closed once, and only while it is open.
			if (paid.has(id) || expired.has(id)) {
				const message = `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${paid.has(id) ? "complete" : "expired"}\`.`;
				return Response.json({ error: { type: "invalid_request_error", message } }, { status: 400 });
			}
			expired.add(id);
			return Response.json({ id, object: "checkout.session", status: "expired" });
		}
		return new Response(null, { status: 404 });
	}
	return {
		url: `http://127.0.0.1:${server.port}`,
		payUrl: `http://localhost:${server.port}/pay/`,
		pages,
		lastPage(): OpenedPage {
			const page = pages.at(-1);
			if (page === undefined) throw new Error("no page was opened");
			return page;
		},
		cards,
		/** Enters a card on a page, as a customer who saves it or pays with it. */
		give(page: OpenedPage, nature?: Parameters<typeof cards.card>[1]): PlayedCard {
			const card = cards.card(page.fields.get("customer") ?? "", nature);
			const method = { ...card, type: "card", card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2031 } };
			const intent = page.fields.get("mode") === "setup" ? "setup_intent" : "payment_intent";
			given.set(page.id, { status: "complete", [intent]: { id: "intent", payment_method: method } });
			return card;
		},
		/** Sets a function that runs while a page is being created. */
		meanwhile(run: () => Promise<void> = async () => {}) {
			meanwhile = run;
		},
		expired,
		paid,
		held,
		/** Sets how slowly later requests are answered, by their method, path and body. */
		slow(how: (request: string) => Slowness = () => undefined) {
			slowness = how;
			quick.resolve();
			quick = Promise.withResolvers();
		},
		/** Sets an answer that replaces Stripe's answers to later requests. */
		lie(says: typeof lie = () => undefined) {
			lie = says;
		},
		fail(on: boolean) {
			failing = on;
		},
		stop: () => server.stop(true),
	};
}

function paymentPage({ amount, fields }: OpenedPage): Response {
	const link = (field: string, text: string) =>
		`<p><a href="${(fields.get(field) ?? "").replaceAll("&", "&amp;")}">${text}</a></p>`;
	const isSetup = fields.get("mode") === "setup";
	const [title, act] = isSetup ? ["Save a card", "Save"] : [`Pay USD ${(amount / 100).toFixed(2)}`, "Pay"];
	const html = `<!doctype html><html lang="en"><head><title>Checkout</title><link rel="icon" href="data:,"></head><body>
<h1>${title}</h1>${link("success_url", act)}${link("cancel_url", "Back")}</body></html>`;
	return new Response(html, { headers: { "content-type": "text/html; charset=utf-8" } });
}

const signer = new Stripe("sk_test_local");

export async function signedEvent(
	secret: string,
	type: string,
	object: Record<string, unknown>,
	more: { id?: string; livemode?: boolean; timestamp?: number } = {},
): Promise<{ body: string; signature: string }> {
	const body = JSON.stringify({
		id: more.id ?? `evt_${crypto.randomUUID()}`,
		object: "event",
		type,
		created: Math.floor(Date.now() / 1000),
		livemode: more.livemode ?? false,
		api_version: "2026-01-01",
		data: { object },
	});
	const timestamp = more.timestamp === undefined ? {} : { timestamp: more.timestamp };
	const signature = await signer.webhooks.generateTestHeaderStringAsync({ payload: body, secret, ...timestamp });
	return { body, signature };
}
