/** Requests at agreed prices: one rate card determines what is reserved, charged and shown, for that account only. */
import { expect, test } from "bun:test";
import { requestDetail } from "../../../src/console/log/log-page.ts";
import { batchesOf, batchModel, chatLine } from "../../batch/batch-service.ts";
import { agree } from "../../support/agree.ts";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { LONG } from "../../support/long-form.ts";
import { requestsTo } from "../../support/requests.ts";
import { secondGateway } from "../../support/second-gateway.ts";
import { tinyModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream("vllm");
const small = tinyModel(upstream.url, "small-model");
const route = "routes: [{ id: cheap, models: [test-model, small-model], by: price }]";
const service = await withService({ models: `${batchModel(upstream.url, { dialect: "vllm" })}\n${small}\n${route}` });
const others = [await secondGateway(service), await secondGateway(service)];
const batches = batchesOf(service, upstream);
const { sql, statements } = service.db;

const send = async (secret: string, body: unknown = ask(), url = service.url) => {
	const response = await requestsTo(url).chat(secret, body);
	await response.text();
	return response.status;
};
/** Prices per token that GET /v1/models shows, and the id of the rate card. */
async function shown(secret: string) {
	const { pricing, batch_pricing, rate_card } = await (await service.get("/v1/models/test-model", secret)).json();
	const of = ({ prompt, completion }: Record<string, string>) => [prompt, completion];
	return { own: of(pricing), lines: of(batch_pricing), card: rate_card as string };
}
const LIST = { own: ["0.000001", "0.000002"], lines: ["0.0000005", "0.000001"], card: "test-model@1" };
const OWN = { input: "3", cached_input: "3", output: "5" };
const model = "test-model";

test.each([
	["discounts for all models", { discount: "25" }, ["0.00000075", "0.0000015"], ["0.000000375", "0.00000075"]],
	["discounts of 100 % for a model", { model, discount: "100" }, ["0", "0"], ["0", "0"]],
	["own rates of a model", { model, rates: OWN }, ["0.000003", "0.000005"], ["0.000003", "0.000005"]],
])("%s apply to requests and batch lines of the agreement's account only", async (_, terms, own, lines) => {
	const [customer, other] = [await service.customer(), await service.customer()];
	const { id } = await agree(service.db, customer.accountId, terms);
	expect(await shown(customer.secret)).toEqual({ own, lines, card: `test-model@1#${id}` });
	expect(await shown(other.secret)).toEqual(LIST);

	upstream.always(() => reply().text("a b c d"));
	const nano = ([prompt, completion]: string[]) => Math.round((6 * Number(prompt) + 4 * Number(completion)) * 1e9);
	for (const { secret } of [customer, other]) expect(await send(secret)).toBe(200);
	const row = await onlyUsage(service, customer.accountId);
	expect([row.charged, row.rate_card_id]).toEqual([nano(own), `test-model@1#${id}`]);
	const listed = await onlyUsage(service, other.accountId);
	expect([listed.charged, listed.rate_card_id]).toEqual([priceOf(6, 4), "test-model@1"]);
	const [usage] = await sql`select * from usage_event where account_id = ${customer.accountId}`;
	const { rateCard, linesTotalNanoUsd } = await requestDetail(statements, usage as never);
	expect([rateCard, linesTotalNanoUsd ?? 0]).toEqual([`test-model@1#${id}`, row.charged as never]);

	const batch = await batches.run(customer.secret, [chatLine("1", "one two three")]);
	expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
	await service.settled();
	const ofLine = (await service.usage(customer.accountId)).find(({ batch_id }) => batch_id === batch.id);
	expect(Number(ofLine?.charged_nano_usd)).toBe(nano(lines));
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);

	await agree(service.db, customer.accountId, { model: "model" in terms ? terms.model : null });
	expect(await shown(customer.secret)).toEqual(LIST);
});

test("a request keeps its price if a price agreement begins or ends during the request", async () => {
	const { accountId, secret } = await service.customer();
	for (const [at, terms] of [{ discount: "50" }, {}].entries()) {
		upstream.next(reply().text("a b c d").trickle(100));
		const client = await service.openChat(secret, ask("one two three", { stream: true }));
		await client.until('"content":"a"');
		await agree(service.db, accountId, terms);
		await client.until("[DONE]");
		client.leave();
		upstream.next(reply().text("a b c d"));
		expect(await send(secret)).toBe(200);
		await service.settled();
		const charged = (await service.usage(accountId)).map(({ charged_nano_usd: nano }) => Number(nano));
		const [list, half] = [priceOf(6, 4), priceOf(6, 4) / 2];
		expect(charged.slice(2 * at)).toEqual(at === 0 ? [list, half] : [half, list]);
	}
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
});

test("an agreed price for a later date is shown and charged from that date on", async () => {
	const { accountId, secret } = await service.customer();
	const fromMs = Date.now() + 1_500;
	await agree(service.db, accountId, { discount: "50", from: new Date(fromMs).toISOString() });
	upstream.always(() => reply().text("a b c d"));
	await send(secret);
	await waitFor(async () => (await shown(secret)).card !== "test-model@1", "the agreed price");
	expect(Date.now()).toBeGreaterThanOrEqual(fromMs);
	await send(secret);
	await service.settled();
	const charged = (await service.usage(accountId)).map(({ charged_nano_usd: nano }) => Number(nano));
	expect(charged).toEqual([priceOf(6, 4), priceOf(6, 4) / 2]);
});

test("a route by price first tries the model that is cheapest for the account", async () => {
	const [customer, other] = [await service.customer(), await service.customer()];
	await agree(service.db, customer.accountId, { model: "small-model", discount: "10" });
	const body = ask("one two three", { model: "cheap", max_tokens: 8 });
	const servedTo = async (secret: string) => (await service.chat(secret, body)).headers.get("x-served-model");
	expect([await servedTo(customer.secret), await servedTo(other.secret)]).toEqual(["small-model", "test-model"]);
	await service.settled();
	const [row] = await service.usage(customer.accountId);
	expect(row?.rate_card_id).toMatch(/^small-model@1#adj_[0-9a-f]{32}$/);
});

test.each([1, 3])(
	"discounted credit for half of a burst on %d instances admits exactly half of it",
	async (gateways) => {
		const atOnce = LONG ? 400 : 160;
		const urls = [service.url, ...others.map(({ url }) => url)].slice(0, gateways);
		upstream.always(() => reply().text("a b c d e f g h").usage({ prompt: 16, completion: 8 }));
		// 32,000 nano-dollars less 37.5 percent.
		const cost = 20_000;
		const { accountId, secret } = await service.customer({ exactCredit: (atOnce / 2) * cost });
		await agree(service.db, accountId, { discount: "37.5" });
		const body = ask("one two three", { model: "small-model", max_tokens: 8 });
		let [sent, served] = [0, 0];
		const burst = async (count: number) => {
			const statuses = await Promise.all(
				Array.from({ length: count }, () => send(secret, body, urls[sent++ % gateways])),
			);
			served += statuses.filter((status) => status === 200).length;
			expect(statuses.filter((status) => status !== 200 && status !== 402)).toEqual([]);
		};
		await burst(atOnce);
		await waitFor(async () => {
			if (served < atOnce / 2) await burst(1);
			return served >= atOnce / 2;
		}, "the whole credit to be used");
		await burst(3 * gateways);
		expect(served).toBe(atOnce / 2);
		await waitFor(async () => (await service.usage(accountId)).length === atOnce / 2, "all settlements");
		const rows = await service.usage(accountId);
		expect(new Set(rows.map((row) => `${row.reserved_nano_usd} ${row.charged_nano_usd}`))).toEqual(
			new Set([`${cost} ${cost}`]),
		);
		expect(Number((await service.balance(accountId)).available)).toBe(0);
		expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	},
	60_000,
);
