import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn as turn } from "../../src/base/time-slice.ts";
import { createKeyLimits } from "../../src/limits/key-limits.ts";
import type { ShareGrant, ShareRequest } from "../../src/limits/share-store.ts";
import { createShares } from "../../src/limits/shares.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { limitsOf } from "./limits-world.ts";

/** A store whose answers the test releases. It once grants `more` than requested; it skips keys in `leftOut`. */
function build() {
	const asks: ShareRequest[] = [];
	const state = { more: 0, openings: 1, leftOut: "", beforeReply: async () => {} };
	const store = {
		async hold(asked: readonly ShareRequest[]): Promise<ShareGrant[]> {
			asks.push(...asked);
			await state.beforeReply();
			const { more } = state;
			state.more = 0;
			return asked
				.filter(({ key }) => key !== state.leftOut)
				.map(({ key, kind, have, need }) => ({ key, kind, share: need > have ? have + more : have, free: 0 }));
		},
	};
	const clock = createManualClock();
	/** Delays the next replies until the returned function is called. */
	const holdReply = () => {
		const { promise, resolve } = Promise.withResolvers<void>();
		state.beforeReply = () => promise;
		return () => {
			state.beforeReply = async () => {};
			resolve();
		};
	};
	return {
		asks,
		holdReply,
		state,
		store,
		clock,
		shares: createShares({ store, clock, log: silentLog, openings: () => state.openings }),
	};
}

test("a share keeps its used part when it is returned", async () => {
	const { shares, asks } = build();
	const share = shares.obtain("key", "rate", () => 3);
	share.amount = 10;
	shares.giveBack(share);
	await shares.sent();
	expect([share.amount, asks.at(-1)?.have]).toEqual([3, 3]);
});

test("a share returned while a statement ends is sent at once", async () => {
	for (let steps = 0; steps < 12; steps++) {
		const { shares, asks, holdReply } = build();
		const [first, second] = ["first", "second"].map((key) => shares.obtain(key, "rate", () => 0));
		if (!first || !second) throw new Error("both were obtained");
		first.amount = 5;
		second.amount = 5;
		const answer = holdReply();
		shares.giveBack(first);
		await turn();
		answer();
		for (let step = 0; step < steps; step++) await undefined;
		shares.giveBack(second);
		await shares.sent();
		expect({ steps, asked: asks.map(({ key }) => key) }).toEqual({ steps, asked: ["first", "second"] });
	}
});

test("a share returned during a draw stays returned after the draw's answer", async () => {
	const { shares, asks, state, holdReply } = build();
	let used = 5;
	const share = shares.obtain("key", "rate", () => used);
	share.amount = 5;
	share.limit = 100;
	state.more = 3;
	const answer = holdReply();
	const drawn = shares.draw(share, 1);
	await turn();
	expect(asks.at(-1)).toMatchObject({ have: 5, need: 6 });
	used = 0;
	shares.giveBack(share);
	answer();
	await drawn;
	await shares.sent();
	expect([share.amount, asks.at(-1)?.have]).toEqual([3, 3]);
});

test.each(["the limit was lowered", "the gate was closed"])(
	"a granted share is reported as unused if %s before it arrived",
	async (why) => {
		const { shares, asks, state, clock, holdReply } = build();
		const share = shares.obtain("key", "running", () => 1);
		shares.limitTo(share, 100);
		state.more = 50;
		const answer = holdReply();
		const drawn = shares.draw(share, 1);
		await turn();
		expect(asks.at(-1)).toMatchObject({ have: 1, need: 2, limit: 100 });
		if (why === "the gate was closed") state.openings += 1;
		else shares.limitTo(share, 1);
		answer();
		await turn();
		expect([share.amount, asks.at(-1)?.have]).toEqual([1, 1]);
		expect(asks.length).toBeGreaterThan(1);
		shares.limitTo(share, 1);
		clock.advance(1_000);
		await drawn;
	},
);

test.each(["a lowered limit", "a gate that was closed"])(
	"a share is reduced to its used part after %s until the next grant",
	async (what) => {
		const { shares, state } = build();
		let used = 5;
		const share = shares.obtain("key", "running", () => used);
		shares.limitTo(share, 100);
		share.amount = 10;
		const limit = what === "a lowered limit" ? 90 : 100;
		if (limit === 100) state.openings += 1;
		const amounts: number[] = [];
		for (const now of [5, 1]) {
			used = now;
			shares.limitTo(share, limit);
			amounts.push(share.amount);
		}
		expect(amounts).toEqual([5, 1]);
		await shares.sent();
		state.more = 4;
		await shares.draw(share, 1);
		used = 0;
		shares.limitTo(share, limit);
		expect(share.amount).toBe(5);
	},
);

test("a return of a share that failed is sent again", async () => {
	const { shares, asks, state } = build();
	const share = shares.obtain("key", "running", () => 1);
	share.amount = 4;
	state.beforeReply = async () => {
		throw new Error("away");
	};
	shares.giveBack(share);
	await shares.sent();
	state.beforeReply = async () => {};
	shares.tick();
	await shares.sent();
	expect(asks.map(({ have }) => have)).toEqual([1, 1]);
	shares.tick();
	await shares.sent();
	expect(asks.length).toBe(2);
});

test("a share that the store skips is reported again once per tick", async () => {
	const { shares, asks, state, clock } = build();
	state.leftOut = "held";
	const released = shares.obtain("held", "rate", () => 0);
	const kept = shares.obtain("held", "running", () => 1);
	kept.limit = 10;
	released.amount = kept.amount = 4;
	shares.release(released);
	shares.giveBack(kept);
	await shares.sent();
	expect(asks.map(({ kind, have }) => [kind, have])).toEqual([
		["rate", 0],
		["running", 1],
	]);
	expect(shares.obtain("held", "rate", () => 0)).toBe(released);
	shares.release(released);
	await shares.sent();
	const drawn = shares.draw(kept, 1).catch((error: unknown) => error);
	for (let pause = 0; pause < 4; pause++) {
		for (let step = 0; step < 20; step++) await turn();
		clock.advance(200);
	}
	expect(await drawn).toMatchObject({ code: "service_unavailable" });
	expect(kept.dryUntilMs).toBeLessThan(clock.monotonicMs());
	state.leftOut = "";
	asks.length = 0;
	shares.tick();
	await shares.sent();
	expect(asks.map(({ kind, have }) => [kind, have]).sort()).toEqual([
		["rate", 0],
		["running", 1],
	]);
	shares.tick();
	await shares.sent();
	expect(asks).toHaveLength(2);
	expect(shares.obtain("held", "rate", () => 0)).not.toBe(released);
});

test("a draw of a share is sent before reports once the gate is open again", async () => {
	const { shares, asks, state, holdReply } = build();
	let count = 3_000;
	for (let at = 0; at < count; at++) shares.obtain(`key ${at}`, "running", () => 1).amount = 4;
	state.openings += 1;
	const answer = holdReply();
	shares.tick();
	for (let step = 0; step < 20; step++) await turn();
	const wanted = shares.obtain("wanted", "rate", () => 0);
	shares.limitTo(wanted, 10);
	const drawn = shares.draw(wanted, 1);
	answer();
	state.beforeReply = async () => {
		state.more = 6;
	};
	await drawn;
	expect(asks.length).toBeLessThan(count);
	await shares.sent();
	const told = asks.filter(({ kind }) => kind === "running");
	expect([told.length, new Set(told.map(({ key }) => key)).size, told[0]?.have]).toEqual([count, count, 1]);
	// The key `wanted` keeps the share that it got after the gate opened, and is not reported again.
	expect([wanted.amount, asks.filter(({ key }) => key === "wanted").length]).toEqual([6, 1]);
	count = asks.length;
	shares.tick();
	await shares.sent();
	expect(asks.length).toBe(count);
});

test("an instance admits requests within its share and draws when one more arrives", async () => {
	const { store, state, clock } = build();
	const limits = createKeyLimits({ clock, shared: { store, log: silentLog } });
	for (let minute = 0; minute < 2; minute++) {
		state.more = 2;
		const enter = () => limits.enter("key", limitsOf(100, null), 1);
		expect(enter()).toBe(false);
		await limits.draw("key", limitsOf(100, null), 1);
		expect([enter(), enter(), enter()]).toEqual([true, true, false]);
		limits.leave("key", 0, 0);
		limits.leave("key", 0, 0);
		clock.advance(180_000);
		await turn();
	}
	await limits.stop();
});

test("a key whose share is being drawn is not dropped from memory", async () => {
	const { store, state, asks, clock, holdReply } = build();
	const limits = createKeyLimits({ clock, shared: { store, log: silentLog } });
	const answer = holdReply();
	const drawn = limits.draw("key", limitsOf(10, null), 1);
	await turn();
	for (let second = 0; second < 3; second++) clock.advance(1_000);
	state.more = 4;
	answer();
	await drawn;
	await turn();
	expect([limits.enter("key", limitsOf(10, null), 1), asks.length]).toEqual([true, 1]);
});

test.each([
	["places", limitsOf(null, 8)],
	["tokens", { ...limitsOf(null), tokensPerMinute: 8 }],
] as const)("a request that ends returns its %s only while other instances need them", async (_, of) => {
	const { store, state, asks, clock } = build();
	const limits = createKeyLimits({ clock, shared: { store, log: silentLog } });
	const leave = () => limits.leave("key", 1, clock.monotonicMs());
	state.more = 2;
	await limits.draw("key", of, 1);
	for (let request = 0; request < 2; request++) expect(limits.enter("key", of, 1)).toBe(true);
	leave();
	expect(limits.enter("key", of, 1)).toBe(true);
	limits.recall("key");
	leave();
	await turn();
	expect(asks.map(({ have, seq }) => [have, seq])).toEqual([
		[0, 1],
		[1, 2],
	]);
});
