import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/time-slice.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import { createSlices, type Slices } from "../../src/ledger/slices.ts";
import type { GrantRequest, LedgerStore } from "../../src/ledger/store.ts";
import { generousStore } from "../support/generous-store.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { usd } from "./fixture.ts";
import { OPTIONS, passTime, scriptedSlices } from "./scripted-store.ts";

/** Does what a request does: reserves the amount in each slice, or draws credit and tries again. */
async function reserve(slices: Slices, budgets: readonly string[], amount: number): Promise<boolean> {
	for (;;) {
		const held = budgets.map((budget) => slices.get(budget));
		if (held.every((slice) => slice !== undefined && slice.free >= amount)) {
			for (const slice of held) {
				if (!slice) continue;
				slice.free = usd(slice.free - amount);
				slice.held = usd(slice.held + amount);
			}
			return true;
		}
		if (await slices.draw(budgets, usd(amount))) return false;
	}
}

test("a grant whose reply was lost is requested again with the same operation id", async () => {
	const { slices, state, calls, clock } = scriptedSlices(1_000);
	let failures = 2;
	state.beforeReply = async () => {
		if (failures-- > 0) throw new Error("connection reset");
	};
	const drawn = slices.draw(["b"], usd(10));
	await nextTurn();
	clock.advance(100);
	await nextTurn();
	clock.advance(100);
	expect(await drawn).toBe(null);
	const requests = calls.flatMap((call) => call.requests as GrantRequest[]);
	expect(requests.length).toBe(3);
	expect(new Set(requests.map(({ op }) => op)).size).toBe(1);
	expect(requests.map(({ again }) => again)).toEqual([false, true, true]);
	expect((slices.get("b")?.free ?? 0) + state.available).toBe(1_000);
});

test("a grant that is missing in Postgres's reply is requested again", async () => {
	const clock = createManualClock();
	const generous = generousStore();
	let calls = 0;
	const grant: LedgerStore["grant"] = async (requests) => (calls++ === 0 ? [] : generous.grant(requests));
	const slices = createSlices({ store: { ...generous, grant }, clock, log: silentLog, newUuid }, OPTIONS);
	const drawn = slices.draw(["b"], usd(10));
	await passTime(clock, 5_000);
	expect([await drawn, calls]).toEqual([null, 2]);
});

test("credit that is being returned cannot be spent before the return is sent", async () => {
	const { slices, state, calls, clock } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	const slice = slices.get("b");
	const free = slice?.free as number;
	expect(free).toBeGreaterThan(10);
	state.beforeReply = () => new Promise(() => {});
	void slices.answer("b", 1);
	expect(slice?.free).toBe(usd(0));
	expect(slice?.returning).toBe(usd(free));
	await nextTurn();
	expect(calls.at(-1)).toEqual({
		kind: "return",
		requests: [{ op: expect.any(String), budget: "b", amount: usd(free), recall: 1 }],
	});
});

test("a return without an answer is sent again with the same operation id", async () => {
	const { slices, state, calls, clock } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	let fail = true;
	state.beforeReply = async () => {
		if (fail) throw new DatabaseTimeout("timeout");
	};
	const done = slices.answer("b", 1);
	await nextTurn();
	fail = false;
	clock.advance(100);
	await done;
	const ops = calls.filter(({ kind }) => kind === "return").map(({ requests }) => requests[0]?.op);
	expect(ops.length).toBe(2);
	expect(ops[0]).toBe(ops[1] as string);
	expect(slices.get("b")?.returning).toBe(usd(0));
});

test("a recall is answered only after the grant in transit has arrived", async () => {
	const { slices, state, clock, holdReplies } = scriptedSlices(1_000);
	const answer = holdReplies();
	const drawn = slices.draw(["b"], usd(10));
	await nextTurn();
	let surrendered = false;
	const done = slices.answer("b", 1).then(() => {
		surrendered = true;
	});
	await nextTurn();
	expect(surrendered).toBe(false);
	answer();
	await drawn;
	await done;
	// The slice keeps the amount promised to the draw; the rest was returned.
	expect(slices.get("b")?.free).toBe(usd(10));
	expect(state.available).toBe(990);
	clock.advance(0);
	await nextTurn();
	expect(state.available).toBe(1_000);
});

test("a refusal names the budget, the needed and the available amount", async () => {
	const { slices } = scriptedSlices(30);
	expect(await slices.draw(["b"], usd(31))).toEqual({
		budget: "b",
		needNanoUsd: usd(31),
		availableNanoUsd: usd(30),
		untimely: false,
	});
});

test("all waiting requests learn that a cap period has ended or not begun", async () => {
	const { slices, state } = scriptedSlices(1_000);
	state.untimely = true;
	const drawn = await Promise.all([slices.draw(["b"], usd(10)), slices.draw(["b"], usd(20))]);
	expect(drawn).toEqual([
		expect.objectContaining({ budget: "b", needNanoUsd: usd(10), untimely: true }),
		expect.objectContaining({ budget: "b", needNanoUsd: usd(20), untimely: true }),
	]);
	state.untimely = false;
	expect(await slices.draw(["b"], usd(10))).toBe(null);
});

test("a request is not refused before returns in transit have arrived", async () => {
	const { slices, state, calls, holdReplies } = scriptedSlices(100);
	await slices.draw(["b"], usd(10));
	const arrive = holdReplies();
	void slices.answer("b", 1);
	await nextTurn();
	state.beforeReply = async () => {};
	const drawn = slices.draw(["b"], usd(95));
	for (let turn = 0; turn < 3; turn++) await nextTurn();
	// No more grants are requested while the draw waits.
	expect(calls.filter(({ kind }) => kind === "grant")).toHaveLength(2);
	arrive();
	expect(await drawn).toBe(null);
});

test("credit is drawn in advance unless Postgres has none", async () => {
	const { slices, state, calls, sliceOf } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	const slice = sliceOf("b");
	const grantsAfter = async (held: number) => {
		slice.held = usd(held);
		slices.topUp(slice, 1_000_000);
		await nextTurn();
		return calls.filter(({ kind }) => kind === "grant").length;
	};
	expect([await grantsAfter(300), slice.free]).toEqual([2, usd(900)]);
	expect([await grantsAfter(500), slice.free]).toEqual([3, usd(1_000)]);
	state.available = 10_000;
	expect(await grantsAfter(700)).toBe(3);
	slices.limitChanged("b", false);
	expect([await grantsAfter(700), slice.free]).toEqual([4, usd(2_100)]);
});

test("waiting requests get credit in order of arrival, as long as it suffices", async () => {
	const { slices } = scriptedSlices(30);
	const served: number[] = [];
	const outcomes = await Promise.all(
		[1, 2, 3, 4, 5].map(async (number) => {
			const got = await reserve(slices, ["b"], 10);
			if (got) served.push(number);
			return got;
		}),
	);
	expect(outcomes).toEqual([true, true, true, false, false]);
	expect(served).toEqual([1, 2, 3]);
});

test("a request that waits longer than the deadline gets 503", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	state.beforeReply = () => new Promise(() => {});
	const drawn = slices.draw(["b"], usd(10));
	await nextTurn();
	clock.advance(5_000);
	await expect(drawn).rejects.toMatchObject({ name: "Fault", code: "service_unavailable" });
	expect(slices.get("b")?.waiters).toEqual([]);
});

test("a request that needs no credit sends no statement to Postgres", async () => {
	const { slices, calls } = scriptedSlices(0);
	expect(await slices.draw(["b", "k"], usd(0))).toBe(null);
	expect(slices.get("b")?.free).toBe(usd(0));
	expect(calls).toEqual([]);
});

test("a return that Postgres refuses is repeated at growing intervals", async () => {
	const { slices, state, calls, clock } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	await nextTurn();
	state.beforeReply = async () => {
		throw new Error("no lease to return to");
	};
	slices.limitChanged("b", true);
	const minutes = async (count: number) => {
		for (let second = 0; second < 60 * count; second += 5) {
			await nextTurn();
			clock.advance(5_000);
		}
	};
	await minutes(35);
	const tries = calls.filter(({ kind }) => kind === "return").length;
	expect(tries).toBeGreaterThan(7);
	// With a retry every five seconds there would be 400 tries.
	expect(tries).toBeLessThan(60);
	expect(slices.get("b")?.returning).toBeGreaterThan(0);
	state.beforeReply = async () => {};
	await minutes(6);
	expect(slices.get("b")?.returning ?? 0).toBe(0);
});

test("an instance returns unused credit of an idle budget and forgets the budget", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(59_000);
	expect(slices.get("b")?.free).toBeGreaterThan(0);
	clock.advance(2_000);
	await nextTurn();
	expect(state.available).toBe(1_000);
	clock.advance(1_000);
	expect(slices.get("b")).toBe(undefined);
});

test("an instance does not forget a budget with unacknowledged charges", async () => {
	const { slices, clock, sliceOf } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	const slice = sliceOf("b");
	slice.unacknowledged = usd(4);
	for (let minute = 0; minute < 3; minute++) {
		for (let second = 0; second < 61; second++) clock.advance(1_000);
		await nextTurn();
	}
	expect([slice.free, slices.get("b")]).toEqual([usd(0), slice]);
	slice.unacknowledged = usd(0);
	for (let second = 0; second < 3; second++) clock.advance(1_000);
	expect(slices.get("b")).toBeUndefined();
});
