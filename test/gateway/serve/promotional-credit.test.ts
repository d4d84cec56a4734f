/**
 * Promotional credit under concurrent requests on two instances: it can be spent to the last request, and the unused
 * part is taken back exactly.
 */
import { expect, test } from "bun:test";
import { bookAdjustment, takeBackEndedPromotions } from "../../../src/billing/adjustments.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { ask, priceOf } from "../../support/chat.ts";
import { LONG } from "../../support/long-form.ts";
import { requestsTo } from "../../support/requests.ts";
import { secondGateway } from "../../support/second-gateway.ts";
import { tinyModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const AT_ONCE = LONG ? 400 : 160;
const USAGE = { prompt: 16, completion: 8 };
/** The prompt fills the context, so that a request costs its reservation. */
const COST = priceOf(USAGE.prompt, USAGE.completion);
const TEXT = "a b c d e f g h";
const YESTERDAY = new Date(Date.now() - 24 * 3_600_000).toISOString().slice(0, 10);

const upstream = withUpstream("vllm");
const service = await withService({ models: tinyModel(upstream.url) });
const { sql, statements, tx } = service.db;
const gateways = [service.url, (await secondGateway(service)).url];

const send = async (secret: string, nth: number) => {
	const body = ask("one two three", { max_tokens: USAGE.completion });
	const response = await requestsTo(String(gateways[nth % 2])).chat(secret, body);
	await response.text();
	return response.status;
};

async function customer(paid: number, promotional: number, lastDay: string | null) {
	const made = await service.customer({ exactCredit: paid * COST });
	const asked = {
		accountId: made.accountId,
		amount: nanoUsd(promotional * COST),
		reason: "test",
		promotion: { lastDay },
	};
	await bookAdjustment(tx, { ...asked, idempotencyKey: crypto.randomUUID(), operatorId: "usr_test", ip: null }, null);
	return made;
}

/** Credit, free credit, spending, and used and remaining promotional credit, as multiples of a request's cost. */
async function booksOf(accountId: string) {
	const [row] = await sql`
		select (b.limit_nano_usd / ${COST}::numeric)::float8 as credit, ((b.limit_nano_usd - b.drawn_nano_usd) / ${COST}::numeric)::float8 as free,
			(s.spent / ${COST}::numeric)::float8 as spent, (promotion_used(b.id, s.spent) / ${COST}::numeric)::float8 as used,
			(select coalesce(sum(l.left_nano_usd), 0) / ${COST}::numeric from promotion_left(b.id, s.spent) l)::float8 as left
		from budget b, budget_spent(b.id) as s(spent) where b.id = ${accountId}`;
	return row as unknown as { credit: number; free: number; spent: number; used: number; left: number };
}

test("promotional credit that expires in a burst of requests stops no paid request", async () => {
	upstream.always(() => reply().text(TEXT).usage(USAGE).delay(5));
	const { accountId, secret } = await customer(AT_ONCE, AT_ONCE, YESTERDAY);
	const end = (async () => {
		await waitFor(async () => (await service.usage(accountId)).length >= 10, "the first settlements");
		await waitFor(async () => {
			await takeBackEndedPromotions(statements);
			return (await booksOf(accountId)).left === 0;
		}, "the promotional credit to end");
	})();
	const sender = async (_: unknown, nth: number) => {
		const statuses: number[] = [];
		for (let left = AT_ONCE / 16; left > 0; left--) {
			if (left === 1) await end;
			statuses.push(await send(secret, nth));
		}
		return statuses;
	};
	const statuses = (await Promise.all(Array.from({ length: 16 }, sender))).flat();
	expect(new Set(statuses)).toEqual(new Set([200]));
	await waitFor(async () => (await service.usage(accountId)).length === AT_ONCE, "all settlements");
	const { credit, used } = await booksOf(accountId);
	// Unused promotional credit is taken back, so the remaining credit is the paid credit.
	expect(credit).toBe(AT_ONCE + used);
	expect(used).toBeGreaterThanOrEqual(10);
	expect(used).toBeLessThanOrEqual(AT_ONCE - 16);
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
});
