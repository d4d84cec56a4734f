import { describe, expect, test } from "bun:test";
import type { GrantReply, LedgerStore } from "../../src/ledger/store.ts";
import { testsMayTake } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { giving, settledEvent, usd, wish } from "./fixture.ts";
import type { ContractStore } from "./store-contract.ts";
import { canonicalDump, modelContractStore, postgresContractStore, resultOf } from "./store-contract.ts";

testsMayTake(60_000);

const freshPostgres = async () => postgresContractStore(await withDatabase());

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

async function live(store: ContractStore, id: string, ttlMs = 60_000): Promise<number> {
	const epoch = await store.heartbeats.join(id, ttlMs);
	await store.heartbeats.goLive(id, epoch, (await store.heartbeats.position()).seq, ttlMs);
	return epoch;
}

const suites: [string, ContractStore][] = [
	["postgres", await freshPostgres()],
	["the model", modelContractStore()],
];

for (const [name, store] of suites) {
	await store.budget("acc", "account", "acc", 0);
	await store.budget("key", "key", "acc", 500);
	await store.budget("free", "key", "acc", null);
	await store.book("acc", "adjustment", 1000, "opening", false);

	describe(name, () => {
		const rows = async (table: string) => (canonicalDump(await store.dump()) as Record<string, string[]>)[table];
		const ask = (op: number, budget: string, want: number, min: number, again = false) =>
			wish(budget, want, min, { op: uuid(op), again });
		const give = (op: number, budget: string, amount: number, recall: number | null = null) =>
			giving(budget, amount, { op: uuid(op), recall });

		test("a grant is a fair part of the available credit and at least the minimum", async () => {
			await live(store, "g");
			const ledger = store.ledger("g", 1);
			const amounts = async (...requests: ReturnType<typeof ask>[]) =>
				(await ledger.grant(requests)).map(({ amount, available }: GrantReply) => [amount, available] as unknown);
			expect(await amounts(ask(1, "acc", 800, 10))).toEqual([[500, 500]]);
			expect(await amounts(ask(2, "acc", 10, 10))).toEqual([[10, 490]]);
			expect(await amounts(ask(3, "acc", 800, 480))).toEqual([[480, 10]]);
			expect(await amounts(ask(4, "acc", 800, 11))).toEqual([[0, 10]]);
			expect(await amounts(ask(5, "free", 123_456, 1))).toEqual([[123_456, null]]);
			expect(await amounts(ask(6, "nobody", 5, 1), ask(7, "acc", 10, 1))).toEqual([
				[0, 0],
				[5, 5],
			]);
		});

		test("a repeated grant returns the first grant's amount", async () => {
			const before = canonicalDump(await store.dump());
			const [reply] = await store.ledger("g", 1).grant([ask(1, "acc", 800, 10, true)]);
			expect(reply?.amount).toBe(usd(500));
			expect(canonicalDump(await store.dump())).toEqual(before);
		});

		test("a repeated grant that was refused stays refused", async () => {
			const ledger = store.ledger("g", 1);
			expect((await ledger.grant([ask(8, "acc", 6, 6, true)]))[0]?.amount).toBe(usd(0));
			await store.book("acc", "adjustment", 100, "more", false);
			expect((await ledger.grant([ask(8, "acc", 6, 6)]))[0]?.amount).toBe(usd(0));
		});

		test("a repeated return of credit counts once", async () => {
			const ledger = store.ledger("g", 1);
			const request = give(20, "acc", 200);
			await ledger.giveBack([request]);
			await ledger.giveBack([request]);
			expect((await ledger.grant([ask(21, "acc", 1, 1)]))[0]?.available).toBe(usd(304));
		});

		test("a return of more credit than the lease has is refused", async () => {
			expect(await resultOf(() => store.ledger("g", 1).giveBack([give(22, "acc", 5000)]))).toBe("refused");
		});

		test("a repeated settlement counts once and ends its reservation", async () => {
			const ledger = store.ledger("g", 1);
			const a = settledEvent("acc", "free", 30, { id: uuid(30), reserved: usd(40) });
			const b = settledEvent("acc", "free", 0, { id: uuid(31), reserved: usd(40) });
			await ledger.flush([], JSON.stringify([a, b]));
			expect(await rows("reservations")).toHaveLength(2);
			await ledger.flush([a], "[]");
			await ledger.flush([a, b, a], "[]");
			await ledger.flush([], JSON.stringify([a]));
			expect(await rows("reservations")).toEqual([]);
			expect((await rows("leases"))?.filter((row) => row.startsWith("acc g"))).toEqual(["acc g 1 996 200 30 open 0"]);
		});

		test("a batch with charges above its lease or reservation is refused completely", async () => {
			const before = canonicalDump(await store.dump());
			const fine = settledEvent("acc", "free", 1, { id: uuid(40) });
			const tooMuch = settledEvent("acc", "free", 5_000, { id: uuid(41) });
			const beyond = settledEvent("acc", "free", 5, { id: uuid(42), reserved: usd(4) });
			for (const bad of [tooMuch, beyond]) {
				expect(await resultOf(() => store.ledger("g", 1).flush([fine, bad], "[]"))).toBe("refused");
			}
			expect(canonicalDump(await store.dump())).toEqual(before);
		});

		test("closing leases frees the unused credit once and makes later settlements late", async () => {
			const ledger = store.ledger("g", 1);
			await ledger.close();
			const closed = canonicalDump(await store.dump());
			await ledger.close();
			expect(await store.attest("g", 1, 10)).toBe("0 true");
			await ledger.giveBack([give(50, "acc", 1)]);
			expect(canonicalDump(await store.dump())).toEqual(closed);
			expect(await resultOf(() => ledger.grant([ask(51, "acc", 1, 1)]))).toBe("not live");
			// 1,100 were paid in and 30 are spent, so 1,070 of this charge of 2,000 are covered.
			const late = settledEvent("acc", "free", 2_000, { id: uuid(52) });
			expect(await ledger.flush([late], "[]")).toMatchObject({ late: true, fresh: 0 });
			const again = () => ledger.settleLate(JSON.stringify(late));
			expect([await again(), await again()]).toEqual([usd(930), undefined]);
			expect(await rows("budgets")).toEqual(["acc 1100 1100 930", "free null 1100 0", "key 500 0 0"]);
		});

		test("a late settlement is paid from leases of its epoch, not of a live epoch", async () => {
			await store.budget("full", "account", "full", 0);
			await store.budget("full-key", "key", "full", 70);
			await store.book("full", "adjustment", 100, "full", false);
			for (const id of ["ends", "holds"]) await live(store, id);
			await store.ledger("ends", 1).grant([ask(260, "full", 60, 60), ask(261, "full-key", 50, 50)]);
			await store.ledger("holds", 1).grant([ask(262, "full", 40, 40)]);
			const usage = async (n: number) => (await rows("usage"))?.filter((row) => row.startsWith(uuid(n)));
			const settleLate = (n: number, charged: number) =>
				store
					.ledger("ends", 1)
					.settleLate(JSON.stringify(settledEvent("full", "full-key", charged, { id: uuid(n), reserved: usd(90) })));
			// The account has nothing available. The live instance may still spend the rest of its lease from memory.
			await settleLate(263, 5);
			expect(await usage(263)).toEqual([`${uuid(263)} full full-key ends 1 90 0 5 exact finished`]);
			expect(await store.attest("ends", 1, 0)).toBe("0 false");
			await settleLate(264, 30);
			expect(await usage(264)).toEqual([`${uuid(264)} full full-key ends 1 90 30 0 exact finished`]);
			expect(await rows("budgets")).toContain("full 100 100 5");
			expect(await rows("budgets")).toContain("full-key 70 50 0");
			// The account's lease has 30 left, the key's 20, and the cap 20: the charge is at most 30.
			await settleLate(265, 35);
			await settleLate(265, 35);
			expect(await usage(265)).toEqual([`${uuid(265)} full full-key ends 1 90 30 5 exact finished`]);
			expect(await rows("budgets")).toContain("full 100 100 10");
			expect(await rows("budgets")).toContain("full-key 70 60 0");
			expect(await store.attest("ends", 1, 10)).toBe("0 true");
			await store.ledger("holds", 1).close();
			expect(await rows("budgets")).toContain("full 100 60 10");
			expect(await rows("budgets")).toContain("full-key 70 60 0");
		});

		test("closing leases spares leases with settlements still to come", async () => {
			await store.book("acc", "adjustment", 1_000, "kept", false);
			await store.budget("kept", "account", "kept", 100);
			await live(store, "keeps");
			const ledger = store.ledger("keeps", 1);
			const open = async () =>
				(await rows("leases"))?.filter((row) => row.includes(" keeps 1 ") && row.split(" ")[6] === "open").length;
			await ledger.grant([ask(270, "acc", 50, 50), ask(271, "key", 50, 50), ask(272, "kept", 100, 100)]);
			expect(await open()).toBe(3);
			while ((await ledger.close(["acc", "key"])).closed > 0);
			expect(await open()).toBe(2);
			expect(await rows("budgets")).toContain("kept 100 0 0");
			const event = settledEvent("acc", "key", 20, { id: uuid(273), reserved: usd(50) });
			expect(await ledger.flush([event], "[]")).toMatchObject({ late: true, fresh: 0 });
			// Settles a request that was running when its instance ended.
			expect(await resultOf(() => ledger.grant([ask(274, "kept", 5, 5)]))).toBe("not live");
			await live(store, "another");
			await store.ledger("another", 1).grant([ask(275, "key", 1_000, 1)]);
			await ledger.settleLate(JSON.stringify(event));
			expect((await rows("usage"))?.filter((row) => row.startsWith(uuid(273)))).toEqual([
				`${uuid(273)} acc key keeps 1 50 20 0 exact finished`,
			]);
			expect(await ledger.close(["acc", "key"])).toEqual({ closed: 0, done: false });
			expect(await ledger.close()).toEqual({ closed: 2, done: true });
		});

		test("a request attested as lost is charged if it settles later", async () => {
			await store.book("acc", "adjustment", 100, "again", false);
			await live(store, "lost");
			const ledger = store.ledger("lost", 1);
			await ledger.grant([ask(60, "acc", 50, 50), ask(61, "key", 50, 50)]);
			const event = settledEvent("acc", "key", 20, { id: uuid(62), reserved: usd(50) });
			await ledger.flush([], JSON.stringify([event]));
			expect(await store.attest("lost", 1, 1)).toBe("1 false");
			expect(await store.attest("lost", 1, 1)).toBe("1 true");
			expect((await rows("usage"))?.filter((row) => row.startsWith(uuid(62)))).toEqual([
				`${uuid(62)} acc key lost 1 50 0 0 recovered crashed`,
			]);
			await ledger.settleLate(JSON.stringify(event));
			await ledger.settleLate(JSON.stringify(event));
			expect((await rows("usage"))?.filter((row) => row.startsWith(uuid(62)))).toEqual([
				`${uuid(62)} acc key lost 1 50 20 0 exact finished`,
			]);
		});

		test("a booking counts once per reference, within the available credit", async () => {
			expect(await store.book("acc", "top_up", 5, "opening", false)).toBe(null);
			expect(await store.book("acc", "refund", -10_000, "r", false)).toBe("refused");
			expect(await store.book("acc", "dispute", -200, "d", true)).toBeNumber();
			expect(await store.book("acc", "top_up", 400, "t", false)).toBeNumber();
		});

		test("a lease is open as long as credit is left in it", async () => {
			await store.book("acc", "adjustment", 1_000, "idle", false);
			await live(store, "idle");
			const ledger = store.ledger("idle", 1);
			const states = async () =>
				(await rows("leases"))?.filter((row) => row.includes(" idle 1 ")).map((row) => row.split(" ")[6]);
			await ledger.grant([ask(70, "acc", 50, 50), ask(71, "free", 50, 50)]);
			expect(await states()).toEqual(["open", "open"]);
			await ledger.giveBack([give(72, "acc", 30)]);
			const event = settledEvent("acc", "free", 20, { id: uuid(73), reserved: usd(50) });
			await ledger.flush([event], "[]");
			expect(await states()).toEqual(["closed", "open"]);
			await ledger.giveBack([give(74, "free", 30)]);
			expect(await states()).toEqual(["closed", "closed"]);
			// A request without a charge is settled although its lease is empty.
			const free = settledEvent("acc", "free", 0, { id: uuid(75), reserved: usd(9) });
			expect(await ledger.flush([free], "[]")).toMatchObject({ late: false, fresh: 1 });
			const more = settledEvent("acc", "free", 1, { id: uuid(76) });
			expect(await resultOf(() => ledger.flush([more], "[]"))).toBe("refused");
			await ledger.grant([ask(77, "acc", 5, 5)]);
			expect(await states()).toEqual(["open", "closed"]);
			expect(await store.attest("idle", 1, 10)).toBe("1 true");
		});

		test("a refused grant counts the instances that may still return credit", async () => {
			await store.budget("thin", "account", "thin", 0);
			await store.book("thin", "adjustment", 100, "thin", false);
			for (const id of ["p", "q", "r"]) await live(store, id);
			const [p, q, r] = ["p", "q", "r"].map((id) => store.ledger(id, 1)) as [LedgerStore, LedgerStore, LedgerStore];
			await p.grant([ask(80, "thin", 40, 40)]);
			await q.grant([ask(81, "thin", 40, 40)]);
			const refusal = async (min: number, ticket: number | null, op: number) =>
				(await r.grant([wish("thin", min, min, { op: uuid(op), ticket })]))[0];
			expect(await refusal(30, null, 82)).toMatchObject({ amount: usd(0), available: usd(20), unanswered: 2 });
			// 101 exceeds all that can come back: 20 available and 40 from each of two instances.
			expect(await refusal(101, null, 83)).toMatchObject({ amount: usd(0), unanswered: 0, lent: null });
			const ticket = await r.recall(["thin"]);
			expect(await p.recalls()).toEqual([{ budget: "thin", ticket }]);
			await p.giveBack([give(84, "thin", 5, ticket)]);
			expect(await p.recalls()).toEqual([]);
			expect(await refusal(30, ticket, 85)).toMatchObject({ unanswered: 1, lent: null });
			// The instance has reserved all its credit, so it answers the recall without returning any.
			await q.giveBack([give(86, "thin", 0, ticket)]);
			expect(await refusal(30, ticket, 87)).toMatchObject({ available: usd(25), unanswered: 0, lent: -20n });
			// `lent` grows with grants and with a lowered limit, and stays the same with returned credit.
			await p.grant([ask(190, "thin", 5, 5)]);
			await p.giveBack([give(191, "thin", 3, null)]);
			await store.book("thin", "adjustment", -2, "thin again", false);
			expect(await refusal(30, ticket, 192)).toMatchObject({ available: usd(21), unanswered: 0, lent: -13n });
			expect(await refusal(30, null, 88)).toMatchObject({ unanswered: 2 });
			await store.fence.silent("q", 1, await store.beatOf("q", 1));
			expect(await refusal(30, null, 89)).toMatchObject({ unanswered: 1 });
		});

		test("a grant from a contested budget is minimal and answers the recall", async () => {
			const ledger = store.ledger("q", 1);
			const [held] = await store.ledger("p", 1).grant([ask(90, "thin", 20, 3)]);
			expect(held).toMatchObject({ amount: usd(3), contested: true });
			const [own] = await store.ledger("r", 1).grant([ask(91, "thin", 20, 3)]);
			expect(own).toMatchObject({ contested: false });
			await live(store, "s");
			await store.ledger("s", 1).grant([ask(92, "thin", 20, 2)]);
			expect(await store.ledger("s", 1).recalls()).toEqual([]);
			expect((await ledger.recalls()).length).toBe(0);
		});

		test("a statement of the ledger skips locked rows and names them", async () => {
			await store.budget("row", "account", "row", 0);
			await store.budget("row-key", "key", "row", null);
			await store.book("row", "adjustment", 500, "row", false);
			await live(store, "w");
			const ledger = store.ledger("w", 1);
			await ledger.grant([ask(100, "row", 50, 50), ask(101, "row-key", 50, 50), ask(102, "free", 50, 50)]);
			await store.holding("budget", "row", async () => {
				const replies = await ledger.grant([ask(103, "row", 1, 1), ask(104, "free", 1, 1)]);
				expect(replies.map(({ busy }) => busy)).toEqual([true, false]);
				const busy = await ledger.giveBack([give(105, "row", 1), give(106, "free", 1)]);
				expect([...busy]).toEqual([uuid(105)]);
			});
			const events = [
				settledEvent("row", "row-key", 5, { id: uuid(107) }),
				settledEvent("nobody", "free", 0, { id: uuid(108), reserved: usd(1) }),
			];
			await store.holding("lease", "row", async () => {
				expect(await ledger.flush(events, "[]")).toEqual({ late: false, fresh: 1, busy: new Set(["row"]) });
				expect((await ledger.grant([ask(109, "row", 1, 1)]))[0]?.busy).toBe(true);
				expect([...(await ledger.giveBack([give(110, "row", 0, 1)]))]).toEqual([uuid(110)]);
			});
			expect(await ledger.flush(events, "[]")).toEqual({ late: false, fresh: 1, busy: new Set() });
			await store.holding("budget", "row", async () => {
				expect(await store.attest("w", 1, 10)).toBe("2 false");
				expect(await ledger.flush([], "[]")).toMatchObject({ late: true });
			});
			expect(await store.attest("w", 1, 10)).toBe("1 true");
		});

		test("a fenced instance can never renew its lease", async () => {
			const { heartbeats, fence } = store;
			const epoch = await live(store, "slow");
			const seq = await store.append("x");
			expect(await store.lagging(seq)).toContain("slow|1");
			const beat = await store.beatOf("slow", epoch);
			expect(await heartbeats.heartbeat("slow", epoch, seq - 1, 10)).toEqual({ seq, server: "" });
			await fence.fenceOff("slow", epoch, beat);
			expect(await store.lagging(seq)).toContain("slow|1");
			await fence.silent("slow", epoch, await store.beatOf("slow", epoch));
			expect(await store.lagging(seq)).not.toContain("slow|1");
			expect(await heartbeats.heartbeat("slow", epoch, seq, 60_000)).toBe(null);
			expect(await heartbeats.goLive("slow", epoch, seq, 60_000)).toBe(null);
			expect(await heartbeats.join("slow", 1000)).toBe(2);
			expect(await heartbeats.join("ahead", 1000, 7)).toBe(8);
			expect(await heartbeats.join("ahead", 1000, 7)).toBe(9);
			expect(await heartbeats.goLive("slow", 2, seq - 1, 1000)).toBe(seq);
			expect((await rows("instances"))?.filter((row) => row.startsWith("slow"))).toEqual([
				`slow 1 dead ${seq - 1} 5 10`,
				"slow 2 joining 0 1 1000",
			]);
			expect(await heartbeats.heartbeat("slow", 2, seq + 1, 1000)).toBe(null);
		});
	});
}

/** Executes random statements, some twice, on both stores, and compares replies and tables. */
async function compare(seed: number, steps: number): Promise<void> {
	const random = createRandom(seed);
	const stores = [await freshPostgres(), modelContractStore()];
	const both = async (call: (store: ContractStore) => Promise<unknown>) => {
		const [a, b] = await Promise.all(stores.map((store) => resultOf(() => call(store))));
		expect(b).toEqual(a);
		return a;
	};
	const ids = ["i1", "i2", "i3"];
	const accounts = ["a1", "a2"];
	for (const account of accounts) {
		await both((store) => store.budget(account, "account", account, 0));
		await both((store) => store.book(account, "adjustment", 500, `opening ${account}`, false));
		await both((store) => store.budget(`k-${account}`, "key", account, account === "a1" ? 300 : null));
	}
	const past: ((store: ContractStore) => Promise<unknown>)[] = [];
	const recalling = new Set<(store: ContractStore) => Promise<unknown>>();
	let nextId = 1;
	let tickets = 0;
	const epochs = new Map(ids.map((id) => [id, 0]));
	const times = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
	for (let step = 0; step < steps; step++) {
		const id = random.pick(ids);
		const latest = epochs.get(id) ?? 0;
		if (latest === 0 || random.chance(0.03)) {
			epochs.set(id, latest + 1);
			await both((store) => live(store, id, 600_000));
		}
		const epoch = Math.max(1, (epochs.get(id) ?? 0) - (random.chance(0.1) ? 1 : 0));
		const account = random.pick(accounts);
		const budget = random.pick([account, `k-${account}`]);
		const amount = random.int(1, 60);
		const request = uuid(random.int(1, 60) + 1000);
		const op = uuid(nextId++);
		const again = random.chance(0.3);
		const { seq } = (await both((store) => store.heartbeats.position())) as { seq: number };
		const applied = Math.max(0, seq - (random.chance(0.8) ? 0 : 1));
		const ttlMs = random.chance(0.15) ? 500_000 : 600_000;
		const reserved = usd(amount + random.int(-1, 20));
		const basis = random.chance(0.2) ? ("recovered" as const) : ("exact" as const);
		const event = settledEvent(account, `k-${account}`, amount, { id: request, reserved, basis });
		const min = random.int(1, amount);
		const ticket = random.chance(0.5) ? random.int(1, tickets + 1) : null;
		const beat = (await stores[0]?.beatOf(id, epoch)) ?? 0;
		type Call = (store: ContractStore) => Promise<unknown>;
		const grant: Call = (store) =>
			store.ledger(id, epoch).grant([wish(budget, 3 * amount, min, { op, again, ticket })]);
		const part = giving(budget, random.int(0, 20), { op, recall: random.chance(0.3) ? tickets : null });
		const giveBack: Call = (store) => store.ledger(id, epoch).giveBack([part]);
		const flush: Call = (store) => store.ledger(id, epoch).flush([event], "[]");
		const open: Call = (store) => store.ledger(id, epoch).flush([], JSON.stringify([event]));
		const settle: Call = async (store) => {
			if ((await store.ledger(id, epoch).flush([event], "[]")).late) {
				await store.ledger(id, epoch).settleLate(JSON.stringify(event));
			}
		};
		const whileHeld: Call = (store) =>
			store.holding(step % 2 ? "budget" : "lease", budget, async () => [
				await resultOf(() => grant(store)),
				await resultOf(() => giveBack(store)),
				await resultOf(() => flush(store)),
			]);
		const recall: Call = (store) => store.ledger(id, epoch).recall([budget]);
		recalling.add(recall);
		const calls: Call[] = [
			...times(8, grant),
			...times(4, giveBack),
			...times(3, flush),
			...times(3, open),
			...times(3, settle),
			...times(2, whileHeld),
			...times(2, recall),
			(store) => store.ledger(id, epoch).recalls(),
			(store) => store.heartbeats.goLive(id, epoch, applied, ttlMs),
			(store) => store.heartbeats.join("passer-by", ttlMs),
			...times<Call>(3, (store) => store.heartbeats.heartbeat(id, epoch, applied, ttlMs)),
			(store) => store.heartbeats.leave(id, epoch),
			(store) => store.fence.fenceOff(id, epoch, beat - (step % 2)),
			(store) => store.fence.silent(id, epoch, beat - (step % 2)),
			(store) => store.lagging(seq),
			(store) => store.append(request),
			(store) => store.ledger(id, epoch).close(),
			(store) => store.attest(id, epoch, 1_000),
			...times<Call>(2, (store) =>
				store.book(account, "adjustment", step % 3 === 0 ? -amount : amount, op, step % 5 === 0),
			),
		];
		const call = random.chance(0.25) && past.length > 0 ? random.pick(past) : random.pick(calls);
		past.push(call);
		if (call === recall) tickets += 1;
		await both(call);
		if (recalling.has(call)) await both((store) => store.keepRecalls());
		if (step % 20 === 19)
			expect(canonicalDump(await stores[1]?.dump())).toEqual(canonicalDump(await stores[0]?.dump()));
	}
	expect(canonicalDump(await stores[1]?.dump())).toEqual(canonicalDump(await stores[0]?.dump()));
}

for (const seed of LONG ? [1, 2, 3, 4, 5, 6] : [1, 2]) {
	test(`random statements have the same effect in the model and Postgres (seed ${seed})`, () => compare(seed, 300));
}
