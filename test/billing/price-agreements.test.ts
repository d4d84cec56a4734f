/** Price agreements by operators: the refusals, the operator who decides, and the entry for instances. */
import { expect, test } from "bun:test";
import { confirmAdjustment, rejectAdjustment } from "../../src/billing/adjustments.ts";
import type { WrittenTerms } from "../../src/billing/price-agreements.ts";
import { AGREEMENTS_MAX, type Agreement } from "../../src/catalog/agreements.ts";
import { buildRates, pinRateCards, readRate } from "../../src/catalog/rate-cards.ts";
import { createAccount, updateAccount } from "../../src/keys/account-admin.ts";
import type { PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { listAudit } from "../../src/ops/audit.ts";
import { askPrice } from "../support/agree.ts";
import { withDatabase } from "../support/database.ts";

const db = await withDatabase();
const CHARGED = { input: 1_000_000, cached_input: 500_000, output: 2_000_000 } as Record<string, number>;
const rates = buildRates((name) => (CHARGED[name] ?? 0) as PicoUsdPerUnit);
await pinRateCards(db.statements, [
	{ id: "m", rates },
	{ id: "m#batch", rates },
]);
const OWN = { input: "0.9", cached_input: "0.45", output: "1.8" };

const account = async () =>
	(await createAccount(db.statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true })).id;
const by = (operatorId: string) => ({ operatorId, ip: null });

const ask = (accountId: string, ...rest: Rest) => askPrice(db, accountId, ...rest);
type Rest = [Partial<WrittenTerms>, Parameters<typeof askPrice>[3]?];
const inForce = async (accountId: string) => {
	const [row] = await db.sql`
		select a.agreements, l.payload -> 'agreements' as applied from account a join lateral
			(select payload from control_log where kind = 'account' and subject = a.id order by seq desc limit 1) l on true where a.id = ${accountId}`;
	expect(row?.applied).toEqual(row?.agreements);
	return (row?.agreements ?? []) as Agreement[];
};

test.each<[Partial<WrittenTerms>, string]>([
	[{ discount: "0" }, "discount"],
	[{ discount: "100.01" }, "discount"],
	[{ discount: "10.001" }, "discount"],
	[{ discount: "10", from: "2020-01-01" }, "from"],
	[{ model: "none", discount: "10" }, "model"],
	[{ model: "m#batch", discount: "10" }, "model"],
	[{ rates: OWN }, "rates"],
	[{ model: "m", rates: OWN, discount: "10" }, "rates"],
	[{ model: "m", rates: { input: "1", output: "2" } }, "rates"],
	[{ model: "m", rates: { ...OWN, outputs: "1" } }, "rates"],
	[{ model: "m", rates: { ...OWN, request: "1e3" } }, "rates"],
])("a price agreement with %j is refused, naming the field `%s`", async (terms, param) => {
	const accountId = await account();
	expect(ask(accountId, terms)).rejects.toMatchObject({ code: "invalid_request", param });
	expect((await db.sql`select 1 from credit_adjustment where account_id = ${accountId}`).length).toBe(0);
});

test("a price agreement takes effect with its entry in the control log", async () => {
	const accountId = await account();
	const agreement = await ask(accountId, { model: "m", rates: { ...OWN, request: "0.001" } });
	const [own] = await inForce(accountId);
	expect(own).toMatchObject({ id: agreement.id, model: "m", fromMs: 0, discount: null });
	expect(own?.rates && readRate(own.rates, "request")).toBe(1_000_000_000 as never);
	expect(own?.rates && readRate(own.rates, "search")).toBe(0 as never);
	const from = new Date(Date.now() + 86_400_000).toISOString();
	await ask(accountId, { discount: "12.5", from });
	expect(await inForce(accountId)).toMatchObject([
		{ model: "m" },
		{ model: null, discount: 1250, fromMs: Date.parse(from) },
	]);
	await ask(accountId, { model: "m" });
	expect(await inForce(accountId)).toMatchObject([{ model: null }]);
	const acts = await listAudit(db.statements, { subject: accountId }, { asked: 9, after: null });
	expect(acts.map(({ action, detail }) => [action, detail.discount])).toEqual([
		["account.price", null],
		["account.price", "12.5"],
		["account.price", null],
	]);
});

test("a repeated price agreement is made once, and refused if its terms differ", async () => {
	const [accountId, key] = [await account(), crypto.randomUUID()];
	const from = new Date(Date.now() + 60_000).toISOString();
	const first = await ask(accountId, { discount: "10", from }, { key });
	expect(await ask(accountId, { discount: "10.00", from }, { key })).toEqual(first);
	expect(await inForce(accountId)).toHaveLength(1);
	expect(ask(accountId, { discount: "11", from }, { key })).rejects.toMatchObject({ code: "conflict" });
	expect(ask(await account(), { discount: "10", from }, { key })).rejects.toMatchObject({ code: "conflict" });
	expect(ask("acc_none", { discount: "10" })).rejects.toMatchObject({ code: "not_found" });
});

test("an agreed price far from the list price waits for a second operator", async () => {
	const accountId = await account();
	const limits = { secondLookFrom: 2_000 };
	const stateOf = async (terms: Partial<WrittenTerms>) => (await ask(accountId, terms, limits)).state;
	expect(await stateOf({ discount: "19.99" })).toBe("booked");
	expect(await stateOf({ discount: "20" })).toBe("pending");
	expect(await stateOf({ model: "m", rates: OWN })).toBe("booked");
	expect(await stateOf({ model: "m", rates: { ...OWN, output: "1.6" } })).toBe("pending");
	expect(await stateOf({ model: "m", rates: { ...OWN, output: "2.4" } })).toBe("pending");
	expect(await stateOf({ model: "m", rates: { ...OWN, request: "0.000000000001" } })).toBe("pending");
	expect(await stateOf({ model: "m" })).toBe("booked");
	const before = await inForce(accountId);
	const { id } = await ask(accountId, { discount: "50" }, limits);
	expect(await inForce(accountId)).toEqual(before);
	expect(confirmAdjustment(db.tx, { id, ...by("usr_one") })).rejects.toMatchObject({ code: "conflict" });
	const both = await Promise.allSettled([
		confirmAdjustment(db.tx, { id, ...by("usr_two") }),
		rejectAdjustment(db.tx, { id, ...by("usr_three"), reason: "too much" }),
	]);
	expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
	const isConfirmed = both[0].status === "fulfilled";
	expect((await inForce(accountId)).some((one) => one.id === id)).toBe(isConfirmed);
	expect(confirmAdjustment(db.tx, { id: "adj_none", ...by("usr_two") })).rejects.toMatchObject({ code: "not_found" });
	const other = (await ask(accountId, { discount: "60" }, limits)).id;
	for (let time = 0; time < 2; time++)
		expect((await rejectAdjustment(db.tx, { id: other, ...by("usr_one"), reason: "no" })).state).toBe("rejected");
});

test("a price agreement confirmed after its planned start begins at the confirmation", async () => {
	const accountId = await account();
	const from = new Date(Date.now() + 60_000).toISOString();
	const { id } = await ask(accountId, { discount: "50", from }, { secondLookFrom: 1 });
	await db.sql`update credit_adjustment set terms = terms || '{"fromMs": 1}' where id = ${id}`;
	await confirmAdjustment(db.tx, { id: id, ...by("usr_two") });
	expect(await inForce(accountId)).toMatchObject([{ id: id, fromMs: 0 }]);
});

test("concurrent price agreements and other changes of an account are all stored", async () => {
	const accountId = await account();
	const models = Array.from({ length: 10 }, (_, nth) => `m${nth}`);
	await pinRateCards(
		db.statements,
		models.map((id) => ({ id, rates })),
	);
	await Promise.all([
		...models.map((model) => ask(accountId, { model, discount: "10" }, { operator: `usr_${model}` })),
		...models.map((_, nth) => updateAccount(db.statements, accountId, { tokensPerMinute: nth + 1 })),
	]);
	expect((await inForce(accountId)).map(({ model }) => model).toSorted()).toEqual(models);
});

test("an account can have a limited number of current and planned agreements", async () => {
	const accountId = await account();
	const nowMs = Date.now();
	const at = (nth: number) => new Date(nowMs + 60_000 * (nth + 1)).toISOString();
	for (let nth = 0; nth < AGREEMENTS_MAX; nth++) await ask(accountId, { discount: "10", from: at(nth) });
	expect(await inForce(accountId)).toHaveLength(AGREEMENTS_MAX);
	expect(ask(accountId, { discount: "10", from: at(AGREEMENTS_MAX) })).rejects.toMatchObject({ code: "conflict" });
	await ask(accountId, { discount: "20", from: at(1) });
	expect(await inForce(accountId)).toMatchObject([{ discount: 1_000 }, { discount: 2_000 }]);
});
