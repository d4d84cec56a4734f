import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn as turn } from "../../src/base/time-slice.ts";
import type { AdmittedEvent } from "../../src/ledger/event.ts";
import type { Journal, JournalMode } from "../../src/ledger/journal.ts";
import { createLedger, type Hold, type Ledger } from "../../src/ledger/ledger.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import type { LedgerStore } from "../../src/ledger/store.ts";
import { createWriter } from "../../src/ledger/writer.ts";
import { generousStore, grantReply } from "../support/generous-store.ts";
import { createManualClock, type ManualClock } from "../support/upstream-clock.ts";
import { admittedEvent, outcome, usd } from "./fixture.ts";

async function build(mode: JournalMode, free = 1_000) {
	const clock = createManualClock();
	const written: string[] = [];
	const syncs: (() => void)[] = [];
	const returned: Record<string, number> = {};
	const state = { full: false, settleFails: false, away: false, grantsHang: false, segment: 0, refused: "" };
	const journal: Journal = {
		admit: (body) => written.push(`admit ${JSON.parse(body).id}`),
		progress: (body) => void written.push(`progress ${JSON.parse(body).bound}`),
		settle(body) {
			if (state.settleFails) throw new Error("EIO");
			written.push(`settle ${JSON.parse(body).charged}`);
		},
		carry(admitBody, progressBody) {
			const { bound } = JSON.parse(progressBody ?? "{}") as { bound?: number };
			written.push(`carry ${JSON.parse(admitBody).id} ${bound}`);
			return state.segment;
		},
		*settlements() {},
		keepsFrom: () => state.segment,
		acknowledge: () => {},
		durable: () => new Promise((resolve) => syncs.push(resolve)),
		problem: () => (state.full ? "the journal's disk is full" : undefined),
		size: () => ({ segments: 1, bytes: 0 }),
		close: () => void written.push("close"),
		destroy: () => void written.push("destroy"),
	};
	const store: LedgerStore = {
		...generousStore(),
		async grant(requests) {
			if (state.grantsHang) await new Promise(() => {});
			return requests.map(({ op, min, budget }) =>
				grantReply(op, usd(state.refused === budget ? 0 : Math.max(min, free)), { available: usd(0) }),
			);
		},
		async giveBack(requests) {
			for (const { budget, amount } of requests) returned[budget] = (returned[budget] ?? 0) + amount;
			return new Set();
		},
		async flush() {
			if (state.away) throw new Error("away");
			return { late: false, fresh: 0, busy: new Set() };
		},
		async close() {
			written.push("leases closed");
			return { closed: 2, done: true };
		},
	};
	const slices = createSlices({ store, clock, log: silentLog, newUuid }, { horizonMs: 1 });
	const writer = createWriter(
		{ store, clock, log: silentLog },
		{ flushIntervalMs: 100, flushAt: 10, batchMax: 10, queueMax: 3 },
	);
	const ledger = createLedger(
		{ slices, journal, writer, close: async () => void (await store.close()), clock, log: silentLog },
		{ epoch: 1, mode },
	);
	expect(await ledger.draw({ account: "a", key: "k" }, usd(free))).toBe(null);
	const sum = (budget: string) => {
		const slice = slices.get(budget);
		if (!slice) throw new Error("no slice");
		return { free: slice.free, held: slice.held, unacknowledged: slice.unacknowledged };
	};
	return { clock, ledger, written, returned, syncs, state, sum, slices };
}

const request = (reserved: number) => ({ ...admittedEvent("a", "k"), reserved: usd(reserved) });

function held(ledger: Ledger, admission: AdmittedEvent): Hold {
	const hold = ledger.reserve(admission);
	if (!hold) throw new Error("refused");
	return hold;
}

async function pass(clock: ManualClock, seconds: number): Promise<void> {
	for (let second = 0; second < seconds; second++) {
		clock.advance(1_000);
		await turn();
	}
}

test("the ledger draws no account credit for a request that its key's cap refuses", async () => {
	const { ledger, slices, state } = await build("process");
	state.refused = "capped";
	expect(await ledger.draw({ account: "rich", key: "capped" }, usd(10))).toMatchObject({ budget: "capped" });
	expect(slices.get("rich")).toBeUndefined();
});

test("the ledger reserves in both budgets or in neither, with a record in the journal", async () => {
	const { ledger, sum, slices, written, state } = await build("process");
	const key = slices.get("k");
	if (key) key.free = usd(99);
	expect(ledger.reserve(request(100))).toBe(undefined);
	expect(sum("a")).toMatchObject({ free: usd(1_000), held: usd(0) });
	expect(written).toEqual([]);
	state.full = true;
	expect(() => ledger.reserve(request(50))).toThrow("cannot record usage");
	expect(sum("a")).toMatchObject({ free: usd(1_000), held: usd(0) });
	state.full = false;
	ledger.reserve(request(50));
	expect(sum("a")).toMatchObject({ free: usd(950), held: usd(50) });
	expect(sum("k")).toMatchObject({ free: usd(49), held: usd(50) });
	expect(written.length).toBe(1);
});

test("a settlement frees unused credit, and its charge is kept until it is recorded", async () => {
	const { ledger, sum, clock } = await build("process");
	const hold = held(ledger, request(100));
	ledger.settle(hold, outcome(30));
	expect(sum("a")).toEqual({ free: usd(970), held: usd(0), unacknowledged: usd(30) });
	expect(() => ledger.settle(hold, outcome(30))).toThrow("settled once");
	clock.advance(100);
	await turn();
	expect(sum("a")).toEqual({ free: usd(970), held: usd(0), unacknowledged: usd(0) });
});

test("the ledger acknowledges each of many settlements with its own charge", async () => {
	const { ledger, sum, clock } = await build("process");
	const settle = (cost: number) => {
		const hold = held(ledger, request(100));
		ledger.settle(hold, outcome(cost));
	};
	// The first three settlements fill the queue's slots; the next three reuse them.
	for (const costs of [
		[10, 0, 30],
		[40, 5, 6],
	]) {
		for (const cost of costs) settle(cost);
		expect(sum("a").unacknowledged).toBe(usd(costs.reduce((all, cost) => all + cost)));
		clock.advance(100);
		await turn();
		expect([sum("a").unacknowledged, sum("k").unacknowledged]).toEqual([usd(0), usd(0)]);
	}
	expect(sum("k")).toEqual({ free: usd(909), held: usd(0), unacknowledged: usd(0) });
});

test("the ledger takes a cost above the bound from free credit and writes off the rest", async () => {
	const { ledger, sum, slices } = await build("process");
	const hold = held(ledger, request(100));
	const key = slices.get("k");
	if (key) key.free = usd(20);
	const event = ledger.settle(hold, outcome(150));
	expect([event.charged, event.off, event.reserved]).toEqual([usd(120), usd(30), usd(120)]);
	expect(sum("k")).toEqual({ free: usd(0), held: usd(0), unacknowledged: usd(120) });
	expect(sum("a")).toEqual({ free: usd(880), held: usd(0), unacknowledged: usd(120) });
});

test.each([
	["k", "journalled"],
	["a", "journalled"],
	["p", "journalled"],
	["k", "not journalled"],
])("the ledger returns unused credit if the limit of budget %s was lowered, %s", async (lowered, how) => {
	const { ledger, sum, state, clock, returned } = await build("process");
	const ofProject = (reserved: number) => ({ ...request(reserved), budgets: ["p"] });
	expect(await ledger.draw(ofProject(0), usd(1_000))).toBe(null);
	clock.advance(0);
	const first = held(ledger, ofProject(100));
	ledger.limitChanged(lowered, true);
	expect(sum(lowered)).toMatchObject({ free: usd(0), held: usd(100) });
	// Advances the clock until the refused budget is no longer marked as contested.
	clock.advance(60_000);
	expect(await ledger.draw(ofProject(0), usd(10))).toBe(null);
	clock.advance(0);
	const fresh = sum(lowered).free;
	const other = held(ledger, ofProject(10));
	state.settleFails = how === "not journalled";
	ledger.settle(first, outcome(30));
	state.settleFails = false;
	expect(sum(lowered).free).toBe(usd(fresh - 10));
	await pass(clock, 3);
	expect(sum(lowered)).toEqual({ free: usd(fresh - 10), held: usd(10), unacknowledged: usd(0) });
	expect(returned[lowered]).toBe(900 + 70);
	// This request reserved under the new limit, so its unused rest becomes free credit of the instance.
	ledger.settle(other, outcome(4));
	expect(sum(lowered)).toEqual({ free: usd(fresh - 4), held: usd(0), unacknowledged: usd(4) });
});

test("the ledger writes each increase of a request's bound to the journal first", async () => {
	const { ledger, written } = await build("process");
	const hold = held(ledger, request(100));
	for (const [delivered, bound] of [
		[0, 10],
		[5, 10],
		[10, 20],
		[11, 15],
	] as const) {
		ledger.progress(hold, { delivered: usd(delivered), bound: usd(bound), promptTokens: 1, completionTokens: 1 });
	}
	expect(written.slice(1)).toEqual(["progress 10", "progress 20"]);
	expect(hold.bound).toBe(usd(20));
});

test("an answer waits for nothing, the disk or Postgres, as the journal's mode says", async () => {
	const process_ = await build("process");
	const free = held(process_.ledger, request(10));
	expect(process_.ledger.durable(free)).toBe(undefined);

	const host = await build("host");
	const hold = held(host.ledger, request(10));
	let known = 0;
	void host.ledger.durable(hold)?.then(() => known++);
	await turn();
	expect(known).toBe(0);
	host.syncs[0]?.();
	await turn();
	expect(known).toBe(1);
	host.ledger.settle(hold, outcome(1));
	expect(host.ledger.settledDurable(hold)).toBeInstanceOf(Promise);
	expect(host.syncs.length).toBe(2);

	const remote = await build("remote");
	remote.state.away = true;
	const far = held(remote.ledger, request(10));
	let steps = 0;
	void remote.ledger.durable(far)?.then(() => steps++);
	await turn();
	expect(steps).toBe(0);
	remote.state.away = false;
	await pass(remote.clock, 5);
	expect(steps).toBe(1);
	remote.ledger.settle(far, outcome(1));
	void remote.ledger.settledDurable(far)?.then(() => steps++);
	await turn();
	await turn();
	expect(steps).toBe(2);
});

test("the ledger refuses new requests with 503 while its queue of settlements is full", async () => {
	const { ledger, state } = await build("process");
	state.away = true;
	for (let n = 0; n < 4; n++) {
		if (n === 3) {
			expect(() => ledger.reserve(request(1))).toThrow(expect.objectContaining({ code: "service_unavailable" }));
			break;
		}
		const hold = ledger.reserve(request(1));
		if (hold) ledger.settle(hold, outcome(1));
	}
});

test("a settlement that is not in the journal frees credit once Postgres has it", async () => {
	const { ledger, state, sum, clock } = await build("process");
	const hold = held(ledger, request(10));
	state.settleFails = true;
	ledger.settle(hold, outcome(4));
	expect(sum("a")).toEqual({ free: usd(990), held: usd(6), unacknowledged: usd(4) });
	clock.advance(100);
	await turn();
	expect(sum("a")).toEqual({ free: usd(996), held: usd(0), unacknowledged: usd(0) });
});

test("the ledger stops by closing its leases after the last settlement", async () => {
	const { ledger, written, clock, state } = await build("process");
	const hold = held(ledger, request(10));
	const retired = ledger.retire(10_000);
	expect(() => ledger.reserve(request(1))).toThrow(expect.objectContaining({ code: "service_unavailable" }));
	state.away = true;
	ledger.settle(hold, outcome(4));
	await pass(clock, 5);
	expect(written).not.toContain("leases closed");
	state.away = false;
	await pass(clock, 3);
	expect(await retired).toBe(true);
	expect(written.slice(-2)).toEqual(["leases closed", "destroy"]);
});

test("a stop that reaches its deadline keeps the ledger's journal and leases", async () => {
	const { ledger, written, clock, state } = await build("process");
	const hold = held(ledger, request(10));
	state.away = true;
	ledger.settle(hold, outcome(4));
	const retired = ledger.retire(3_000);
	await pass(clock, 5);
	expect(await retired).toBe(false);
	state.away = false;
	await pass(clock, 5);
	expect(written).not.toContain("leases closed");
	expect(written.at(-1)).toBe("close");
});

test("at the drain deadline the ledger settles a request that still waits for credit", async () => {
	const { ledger, written, clock, state } = await build("process", 10);
	const hold = held(ledger, request(10));
	state.grantsHang = true;
	const settle = () => ledger.settle(hold, outcome(15));
	const settled = ledger.draw(hold.admitted, usd(5)).then(settle, settle);
	const retired = ledger.retire(3_000);
	await pass(clock, 4);
	expect(await settled).toMatchObject({ charged: usd(10), off: usd(5), basis: "exact" });
	expect(await retired).toBe(false);
	expect(written.slice(-2)).toEqual(["settle 10", "close"]);
});

test("after the journal's end the ledger settles a request as a replay would", async () => {
	for (const mode of ["process", "host", "remote"] as const) {
		const { ledger, written, clock, sum } = await build(mode);
		const hold = held(ledger, request(10));
		ledger.progress(hold, { delivered: usd(2), bound: usd(6), promptTokens: 1, completionTokens: 1 });
		const retired = ledger.retire(1_000);
		await pass(clock, 3);
		expect(await retired).toBe(false);
		const before = sum("a");
		const gone = expect.objectContaining({ code: "service_unavailable" });
		expect(() =>
			ledger.progress(hold, { delivered: usd(7), bound: usd(9), promptTokens: 1, completionTokens: 5 }),
		).toThrow(gone);
		expect(ledger.durable(hold)).rejects.toThrow(gone);
		expect(ledger.settle(hold, outcome(9))).toMatchObject({ charged: usd(2), basis: "recovered", ending: "crashed" });
		expect(ledger.settledDurable(hold)).rejects.toThrow(gone);
		expect(() => ledger.settle(hold, outcome(9))).toThrow("settled once");
		expect(written.at(-1)).toBe("close");
		expect(sum("a")).toEqual(before);
	}
});

test("in mode remote a wait for Postgres fails when the journal closes", async () => {
	const { ledger, state, clock } = await build("remote");
	state.away = true;
	const [running, over] = [held(ledger, request(10)), held(ledger, request(10))];
	ledger.settle(over, outcome(1));
	const outcomes: string[] = [];
	for (const waited of [ledger.durable(running), ledger.settledDurable(over)])
		waited?.then(
			() => outcomes.push("known"),
			(error) => outcomes.push(error.code),
		);
	const retired = ledger.retire(1_000);
	await pass(clock, 4);
	expect(await retired).toBe(false);
	await turn();
	expect(outcomes).toEqual(["service_unavailable", "service_unavailable"]);
	expect(ledger.settle(running, outcome(9))).toMatchObject({ basis: "recovered" });
});

test("a reservation draws credit in advance for each of its budgets", async () => {
	const { ledger } = await build("process");
	const budgets = ["project"];
	await ledger.draw({ account: "acc", key: "key", budgets }, usd(600));
	expect(ledger.reserve({ ...admittedEvent("acc", "key"), budgets, reserved: usd(600) })).toBeDefined();
	await turn();
	const free = new Map([...ledger.slices()].map((slice) => [slice.budget, slice.free]));
	for (const budget of ["acc", "key", ...budgets]) expect([budget, free.get(budget)]).toEqual([budget, usd(1_400)]);
});
