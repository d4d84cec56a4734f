import { expect, test } from "bun:test";
import { createTopUp, getTopUp } from "../../src/billing/top-ups.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { type Payer, withAutomatic } from "./automatic.ts";
import type { Slowness } from "./stripe-server.ts";

/**
 * Tests that calls end, delay no other payment and charge once if Stripe never answers, answers late, or sends single
 * bytes.
 */

const automatic = await withAutomatic();
const { attempts, balance, charges, db, pass, payer, spend, stripe } = automatic;
/** Milliseconds for a call: enough for a busy machine, too few for an answer that comes byte by byte. */
const CALL_MS = 1_000;
/** Number of paying accounts, more than the 20 that are charged at once. */
const PAYERS = LONG ? 43 : 23;
const HOW = ["hang", "late", "trickle"] as const;

/** A database on which matching statements take effect but are answered late. */
function answersLate(which: RegExp) {
	const may = Promise.withResolvers<void>();
	const statements = (async (...query: Parameters<typeof db.statements>) => {
		const rows = await db.statements(...query);
		if (which.test(query[0].join(""))) await may.promise;
		return rows;
	}) as typeof db.statements;
	return { statements, answer: may.resolve };
}

const isOf = ({ accountId, card }: Payer, request: string) =>
	request.includes(accountId) ||
	stripe.cards.intents.some(({ id, customer }) => customer === card.customer && request.includes(id));

test("an automatic payment that hangs at Stripe delays no other and is charged once", async () => {
	const slow: { one: Payer; call: RegExp; how: Slowness }[] = [];
	const calls = [/^POST \S+\/payment_intents /, /\/confirm /, /\/cancel /];
	// The short run lets each kind of call fail in one way; the worst is a charge that is answered too late.
	for (const [at, how] of HOW.entries())
		for (const [nth, call] of calls.entries())
			if (LONG || nth === at) slow.push({ how, one: await payer(nth === 2 ? "declined" : "good"), call });
	const ben = await payer();
	for (const { one } of slow) await spend(one, 90);
	stripe.slow((request) => slow.find(({ one, call }) => isOf(one, request) && call.test(request))?.how);
	const console = automatic.hasty(CALL_MS, 10);
	await console.topUpAutomatically();
	await spend(ben, 90);
	const ended = console.ended().then(() => "ended");
	// This account falls below its threshold while the first payments still hang.
	await waitFor(async () => {
		await console.topUpAutomatically();
		return (await balance(ben)) === 110;
	}, "a payment behind those that hang");
	for (const { one } of slow) expect(await balance(one)).toBe(10);
	expect(await ended).toBe("ended");
	await console.ended();
	stripe.slow();
	await pass(4);
	for (const { one, how, call } of slow) {
		const paid = one.card.nature === "good" ? { charges: 1, balance: 110 } : { charges: 0, balance: 10 };
		const seen = { charges: charges(one), balance: await balance(one) };
		expect({ how, call, ...seen }).toEqual({ how, call, ...paid });
		expect(await attempts(one)).toMatchObject([{ state: paid.charges === 1 ? "succeeded" : "declined" }]);
	}
});

test("a console sends at most 20 payments to Stripe at a time", async () => {
	const payers = await Promise.all(Array.from({ length: PAYERS }, () => payer()));
	for (const one of payers) await spend(one, 60);
	const asked = new Set<string>();
	stripe.slow((request) => {
		asked.add(payers.find((one) => isOf(one, request))?.accountId ?? "");
		return "late";
	});
	const late = answersLate(/for update skip locked/);
	const console = automatic.hasty(20_000, 10, late.statements);
	// Ends each run of the job before Postgres has answered which payments the run claimed.
	for (let turn = 0; turn < 3; turn++) await console.topUpAutomatically();
	late.answer();
	await waitFor(() => asked.size >= 20, "20 payments at Stripe");
	for (let turn = 0; turn < 2; turn++) await console.topUpAutomatically();
	expect(asked.size).toBe(20);
	stripe.slow();
	await console.ended();
	await waitFor(async () => {
		await console.topUpAutomatically();
		return payers.every((one) => charges(one) === 1);
	}, "those that waited for a place");
	await console.ended();
	for (const one of payers) expect([charges(one), await balance(one)]).toEqual([1, 140]);
});

test("a console makes at most 10 calls about card pages to Stripe at a time", async () => {
	const opened: string[] = [];
	for (let count = 0; count < 13; count++) {
		const { accountId } = await payer();
		await automatic.cards.saved.setup(accountId, { email: "ann@example.com", back: "http://service/credit?card=" });
		opened.push(stripe.pages.at(-1)?.id ?? "");
	}
	const asked = new Set<string>();
	stripe.slow((request) => {
		asked.add(opened.find((id) => request.includes(id)) ?? "");
		return "late";
	});
	await db.sql`update card_setup set look_at = now() where state = 'open'`;
	const late = answersLate(/update card_setup set look_at/);
	const console = automatic.hasty(20_000, 10, late.statements);
	for (let turn = 0; turn < 3; turn++) await console.collect();
	const ended = console.ended().then(() => asked.size);
	late.answer();
	await waitFor(() => asked.size >= 10, "10 pages at Stripe");
	await console.collect();
	expect(asked.size).toBe(10);
	stripe.slow();
	expect(await ended).toBe(10);
	// Closes these pages; otherwise the job would handle them before those of the next test.
	await db.sql`update card_setup set state = 'closed' where state = 'open'`;
});

test("a call about one card page that hangs at Stripe delays no other page", async () => {
	const console = automatic.hasty(CALL_MS, 10);
	const open = async (how?: Slowness) => {
		const { accountId } = await payer();
		await console.saved.setup(accountId, { email: "ann@example.com", back: "http://service/credit?card=" });
		const page = stripe.lastPage();
		const { id: given } = stripe.give(page);
		const read = async () => {
			const [row] = await db.sql`select payment_method_id as card from saved_card where account_id = ${accountId}`;
			return row?.card === given;
		};
		return { how, id: page.id, read };
	};
	const slow = [await open("hang"), await open("late"), await open("trickle")];
	stripe.slow((request) => slow.find(({ id }) => request.includes(id))?.how);
	await db.sql`update card_setup set look_at = now()`;
	await console.collect();
	const ben = await open();
	await waitFor(async () => {
		await db.sql`update card_setup set look_at = now() where id = ${ben.id}`;
		await console.collect();
		return ben.read();
	}, "a card behind pages that hang");
	await console.ended();
	for (const { read } of slow) expect(await read()).toBe(false);
	stripe.slow();
	await pass(1);
	for (const { read } of slow) expect(await read()).toBe(true);
});

test("each call to Stripe times out if Stripe does not answer", async () => {
	const console = automatic.hasty(CALL_MS, 10);
	const ann = await payer("authentication");
	await spend(ann, 90);
	await pass(2);
	const { accountId } = ann;
	const whom = { email: "ann@example.com", back: "http://service/credit?topup=" };
	const topUps = await Promise.all(
		HOW.map(async (how) => {
			const topUp = { accountId, amountNanoUsd: nanoUsd(100_000_000_000), method: "card" as const, reference: how };
			return getTopUp(db.statements, (await createTopUp(db.statements, topUp)).id);
		}),
	);
	const howOf = (request: string) => HOW.find((_, at) => request.includes(topUps[at]?.id ?? ""));
	stripe.slow((request) => howOf(request) ?? "late");
	const asked = [
		...topUps.map((topUp) => console.checkout(topUp, whom)),
		console.finish(accountId, whom.back),
		console.saved.setup(accountId, whom),
	];
	const cleared = console.clear().then(
		() => "cleared",
		() => "not now",
	);
	for (const answer of await Promise.allSettled(asked))
		expect(answer).toMatchObject({ status: "rejected", reason: { code: "service_unavailable" } });
	const rejected = await db.sql`select 1 from top_up where account_id = ${accountId} and state = 'rejected'`;
	expect(rejected).toHaveLength(HOW.length);
	expect(await cleared).toBe("not now");
	stripe.slow();
	expect(await console.clear()).not.toBeNull();
	// The owner gets the page that the timed-out call created, and pays it once.
	const { length } = stripe.pages;
	const url = await console.finish(accountId, whom.back);
	expect([stripe.pages.length, stripe.pages.some(({ id }) => url.endsWith(id))]).toEqual([length, true]);
});
