import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/time-slice.ts";
import { holdCredit, type Slice } from "../../src/ledger/slice.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import type { LedgerStore } from "../../src/ledger/store.ts";
import { createModelStore } from "../sim/model-store.ts";
import { generousStore } from "../support/generous-store.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { usd } from "./fixture.ts";
import { drawOutcome, OPTIONS, passTime, scriptedSlices } from "./scripted-store.ts";

test("a recall finds credit that moves between instances during the recall", async () => {
	const clock = createManualClock();
	const model = createModelStore(() => clock.wallMs());
	model.budgets.set("b", { id: "b", kind: "account", account: "b", limit: 100, drawn: 0, writtenOff: 0 });
	const on = (id: string) => {
		model.goLive(id, model.join(id, 30_000), 0, 30_000);
		const parts = { hold: undefined as Promise<void> | undefined };
		const store: LedgerStore = {
			...generousStore(),
			grant: async (requests) => model.grant(id, 1, requests),
			async giveBack(requests) {
				await parts.hold;
				return model.giveBack(id, 1, requests);
			},
			recall: async (budgets) => model.recall(id, 1, budgets),
			recalls: async () => model.recalled(id, 1),
		};
		const slices = createSlices({ store, clock, log: silentLog, newUuid }, OPTIONS);
		return { slices, parts };
	};
	const asking = on("asking");
	const holder = on("holder");
	const gate = () => {
		let open = () => {};
		holder.parts.hold = new Promise((resolve) => (open = resolve));
		return open;
	};
	const reserve = async (amount: number) => {
		expect(await drawOutcome(holder.slices.draw(["b"], usd(amount)))).toBe("drawn");
		const slice = holder.slices.get("b") as Slice;
		holdCredit(slice, usd(amount));
		return slice;
	};
	const free = (slice: Slice, amount: number) => {
		slice.held = usd(slice.held - amount);
		slice.free = usd(slice.free + amount);
		holder.slices.settled(slice, clock.monotonicMs());
	};
	// The other instance has reserved 75 of 100 and keeps no free credit; 25 are available in Postgres.
	model.recall("third", 1, ["b"]);
	const slice = await reserve(75);
	clock.advance(0);
	void holder.slices.answer("b", 1);
	await nextTurn();
	expect([slice.held, slice.free]).toEqual([usd(75), usd(0)]);

	// At the recall, 15 of 100 are in transit to Postgres and 40 are free: at no time less than the 38 wanted.
	const arriveFirst = gate();
	free(slice, 15);
	const drawn = drawOutcome(asking.slices.draw(["b"], usd(38)));
	await passTime(clock, 100);
	const [asked] = model.recalled("holder", 1);
	expect(asked?.budget).toBe("b");
	void holder.slices.answer("b", asked?.ticket ?? 0);
	await nextTurn();
	// Another 20 are being returned, the other instance draws 17 of the 25, and then the first 15 arrive.
	const arriveSecond = gate();
	free(slice, 20);
	await reserve(17);
	clock.advance(0);
	holder.parts.hold = undefined;
	arriveFirst();
	await passTime(clock, 200);
	expect(model.recalled("holder", 1).map(({ ticket }) => ticket)).toEqual([(asked?.ticket ?? 0) + 1]);
	// The request is not refused, because a second recall brings all free credit back.
	void holder.slices.answer("b", (asked?.ticket ?? 0) + 1);
	await nextTurn();
	arriveSecond();
	await passTime(clock, 500);
	expect(await drawn).toBe("drawn");
});

test("a recall is repeated if other instances drew credit between its two checks", async () => {
	for (const [rises, becomes] of [
		[45n, "service_unavailable"],
		[44n, "refused"],
		// A `lent` that has decreased proves nothing, so the request gets a 503.
		[-1n, "service_unavailable"],
	] as const) {
		const { slices, state, clock } = scriptedSlices(5);
		state.onGrant = ({ ticket }) => {
			state.unanswered = ticket === null ? 1 : 0;
			state.lent += rises;
		};
		const drawn = drawOutcome(slices.draw(["b"], usd(50)));
		await passTime(clock, 2_500);
		expect([rises, await drawn]).toEqual([rises, becomes]);
		// An instance queries at most twenty times a second.
		expect(state.recalled.length).toBeLessThan(50);
	}
});

test("a recall is repeated if the found credit was used before the request got it", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	let slice: Slice | undefined;
	state.onGrant = ({ ticket }) => {
		state.unanswered = ticket === null ? 1 : 0;
	};
	state.onRecall = async () => {
		if (state.recalled.length !== 2 || !slice) return;
		// The recall found 44 free credit on this instance, which is used here; another instance returns 30.
		holdCredit(slice, usd(44));
		state.available += 30;
	};
	const drawn = drawOutcome(slices.draw(["b"], usd(50)));
	slice = slices.get("b");
	await nextTurn();
	if (slice) slice.free = usd(44);
	await passTime(clock, 600);
	expect(await drawn).toBe("refused");
	// Credit here and in Postgres changed, so the other instances are recalled once more.
	expect(state.recalled.length).toBe(3);
});
