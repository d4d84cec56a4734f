import { expect, test } from "bun:test";
import fc from "fast-check";
import { createTimerWheel } from "../../src/base/timer-wheel.ts";

const TICK_MS = 100;
const STALL_MS = 500;

function handWheel() {
	let nowMs = 12_345.6;
	let tick: (() => void) | undefined;
	const wheel = createTimerWheel({
		nowMs: () => nowMs,
		tickMs: TICK_MS,
		stallMs: STALL_MS,
		every(_, run) {
			tick = run;
			return () => (tick = undefined);
		},
	});
	return {
		wheel,
		now: () => nowMs,
		runs: () => tick !== undefined,
		async pass(ms: number) {
			for (let leftMs = ms; leftMs >= 0; leftMs -= TICK_MS) {
				nowMs += Math.min(leftMs, TICK_MS);
				tick?.();
				await Promise.resolve();
			}
		},
		async stall(ms: number) {
			nowMs += ms;
			tick?.();
			await Promise.resolve();
		},
	};
}

test("the timer wheel fires a deadline once, never early and at most one tick late", async () => {
	const step = fc.record({
		kind: fc.constantFrom("add", "cancel", "pass"),
		amount: fc.integer({ min: 0, max: 5_000 }),
	});
	await fc.assert(
		fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
			const { wheel, now, pass, runs } = handWheel();
			const open: { dueMs: number; cancel: () => void; state: { fired: number; cancelled: boolean } }[] = [];
			for (const { kind, amount } of steps) {
				if (kind === "add") {
					const state = { fired: 0, cancelled: false };
					const dueMs = now() + amount;
					const cancel = wheel.after(amount, () => {
						expect(now()).toBeGreaterThanOrEqual(dueMs);
						state.fired += 1;
					});
					open.push({ dueMs, cancel, state });
				} else if (kind === "cancel") {
					const one = open[amount % Math.max(1, open.length)];
					if (one !== undefined && one.state.fired === 0) {
						one.cancel();
						one.state.cancelled = true;
					}
				} else await pass(amount);
				for (const { dueMs, state } of open) {
					if (state.cancelled) expect(state.fired).toBe(0);
					else if (kind === "pass" && now() >= dueMs + TICK_MS) expect(state.fired).toBe(1);
				}
			}
			await pass(5_000 + TICK_MS);
			await pass(TICK_MS);
			for (const { state } of open) expect(state.fired).toBe(state.cancelled ? 0 : 1);
			expect(runs()).toBe(false);
		}),
		{ numRuns: 300, seed: 11 },
	);
});

test("the timer wheel fires no deadline that another deadline of the same tick cancels", async () => {
	const { wheel, pass } = handWheel();
	const fired: string[] = [];
	wheel.after(1_000, () => {
		fired.push("first");
		cancel();
	});
	const cancel = wheel.after(1_000, () => fired.push("second"));
	await pass(2_000);
	expect(fired).toEqual(["first"]);
});

test("the timer wheel stops ticking once its last deadline is cancelled", async () => {
	const { wheel, runs, pass } = handWheel();
	const cancels = [wheel.after(1_000, () => {}), wheel.after(1_000, () => {}), wheel.after(60_000, () => {})];
	for (const cancel of cancels) {
		expect(runs()).toBe(true);
		cancel();
		await pass(TICK_MS);
	}
	expect(runs()).toBe(false);
});

test("after a stall the timer wheel lets waiting input be read, then fires deadlines", async () => {
	const { wheel, pass, stall } = handWheel();
	const fired: string[] = [];
	const cancel = wheel.after(2_000, () => fired.push("came meanwhile"));
	wheel.after(2_000, () => fired.push("did not come"));
	await pass(TICK_MS);
	await stall(60_000);
	expect(fired).toEqual([]);
	cancel();
	await pass(TICK_MS);
	expect(fired).toEqual(["did not come"]);
	wheel.after(2_000, () => fired.push("late"));
	for (let times = 0; times < 3; times++) await stall(STALL_MS + 1_000);
	expect(fired).toEqual(["did not come", "late"]);
	// A wheel without timers pauses, which must not count as a stall.
	await pass(10 * TICK_MS);
	wheel.after(2_000, () => fired.push("again"));
	await pass(2_000 + TICK_MS);
	expect(fired.at(-1)).toBe("again");
});
