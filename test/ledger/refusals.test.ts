import { expect, test } from "bun:test";
import { nextTurn } from "../../src/base/time-slice.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import { InstanceNotLive } from "../../src/ledger/store.ts";
import { usd } from "./fixture.ts";
import { drawOutcome, passTime, scriptedSlices } from "./scripted-store.ts";

test("a request is refused once each instance with credit has answered the recall", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	state.unanswered = 2;
	const drawn = drawOutcome(slices.draw(["b"], usd(50)));
	let known = false;
	void drawn.then(() => (known = true));
	await passTime(clock, 1_500);
	expect(known).toBe(false);
	state.unanswered = 0;
	await passTime(clock, 200);
	expect(await drawn).toBe("refused");
});

test("a request gets 503 if instances do not answer its recall in time", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	state.unanswered = 1;
	const drawn = drawOutcome(slices.draw(["b"], usd(50)));
	let known = false;
	void drawn.then(() => (known = true));
	// Advances to half a second before callers stop waiting for Postgres.
	await passTime(clock, 2_500);
	expect(known).toBe(true);
	expect(await drawn).toBe("service_unavailable");
	expect(slices.get("b")?.waiters).toEqual([]);
});

test("answers to a recall that was sent before a request do not refuse the request", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	let answered = 1;
	// Simulates an instance that counts as unanswered until it has answered this recall's ticket.
	state.onGrant = ({ ticket }) => {
		state.unanswered = ticket !== null && ticket <= answered ? 0 : 1;
	};
	state.onRecall = async () => {
		// The third recall finds new credit, of which the first request has used two.
		if (state.recalled.length === 3) state.available += 100;
	};
	const first = drawOutcome(slices.draw(["b"], usd(50)));
	await passTime(clock, 50);
	expect(state.recalled.length).toBe(2);
	const late = drawOutcome(slices.draw(["b"], usd(60)));
	answered = 3;
	await passTime(clock, 400);
	expect(await first).toBe("refused");
	expect(await late).toBe("drawn");
	expect(state.recalled.length).toBe(3);
});

test("recalls of many budgets are sent together in few statements", async () => {
	const { slices, state, clock } = scriptedSlices(0);
	state.unanswered = 1;
	const budgets = Array.from({ length: 150 }, (_, n) => `b${n}`);
	const drawn = budgets.map((budget) => drawOutcome(slices.draw([budget], usd(50))));
	await passTime(clock, 300);
	expect(new Set(state.recalled.flat()).size).toBe(150);
	expect(state.recalled.length).toBeLessThan(10);
	state.unanswered = 0;
	await passTime(clock, 300);
	expect(new Set(await Promise.all(drawn))).toEqual(new Set(["refused"]));
});

test("an unanswered recall is sent again", async () => {
	const { slices, state, clock } = scriptedSlices(0);
	state.unanswered = 1;
	let failures = 2;
	state.onRecall = async () => {
		if (failures-- > 0) throw new DatabaseTimeout("late");
		state.available += 50;
	};
	const drawn = drawOutcome(slices.draw(["b"], usd(50)));
	await passTime(clock, 600);
	expect(await drawn).toBe("drawn");
	expect(state.recalled.length).toBe(3);
});

test("a request whose refusal was lost gets credit that was returned in the meantime", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	let replies = 0;
	state.beforeReply = async () => {
		replies += 1;
		// Loses the first answer and the second, which is a final refusal.
		if (replies <= 2) throw new DatabaseTimeout("late");
	};
	const drawn = drawOutcome(slices.draw(["b"], usd(50)));
	await passTime(clock, 150);
	state.available += 100;
	await passTime(clock, 300);
	expect(await drawn).toBe("drawn");
});

test("a locked row delays only the row's account", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	state.held.add("a");
	const held = drawOutcome(slices.draw(["a"], usd(10)));
	const free = drawOutcome(slices.draw(["b"], usd(10)));
	await passTime(clock, 20);
	expect(await free).toBe("drawn");
	state.held.delete("a");
	await passTime(clock, 500);
	expect(await held).toBe("drawn");
});

test("credit returned to a locked row is not spent, and delays no other return", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	await slices.draw(["a"], usd(10));
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	const free = slices.get("b")?.free ?? 0;
	state.held.add("a");
	const answers = [slices.answer("a", 1), slices.answer("b", 1)];
	let first = false;
	void answers[0]?.then(() => (first = true));
	await answers[1];
	expect(slices.get("b")?.returning).toBe(usd(0));
	expect(free).toBeGreaterThan(0);
	expect([slices.get("a")?.free, first]).toEqual([usd(0), false]);
	state.held.delete("a");
	await passTime(clock, 500);
	expect(first).toBe(true);
	expect(state.available).toBe(1_000);
});

test("a recall is answered after all credit in transit has arrived", async () => {
	for (const underWay of ["back", "here"]) {
		const { slices, state, calls, clock, holdReplies, sliceOf } = scriptedSlices(1_000);
		await slices.draw(["b"], usd(10));
		clock.advance(0);
		const slice = sliceOf("b");
		const arrive = holdReplies();
		if (underWay === "back") {
			// Lowers the limit, which returns all free credit; then a finished request leaves a rest in the slice.
			slices.limitChanged("b", true);
			await nextTurn();
			slice.free = usd(5);
		} else {
			slice.free = usd(5);
			void slices.draw(["b"], usd(500));
			await nextTurn();
		}
		state.beforeReply = async () => {};
		const answered = slices.answer("b", 7);
		await nextTurn();
		const answers = () =>
			calls.flatMap(({ requests }) => requests.filter((one) => "recall" in one && one.recall === 7));
		expect([underWay, answers()]).toEqual([underWay, []]);
		arrive();
		await passTime(clock, 50);
		await answered;
		expect([underWay, answers().length]).toEqual([underWay, 1]);
	}
});

test("an instance returns free credit and arriving grants after a limit was lowered", async () => {
	const { slices, state, clock, holdReplies } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	slices.limitChanged("b", true);
	expect(slices.get("b")?.free).toBe(usd(0));
	await nextTurn();
	expect(state.available).toBe(1_000);

	const answer = holdReplies();
	const drawn = drawOutcome(slices.draw(["b"], usd(10)));
	await nextTurn();
	// Lowers the limit while a grant under the old limit is in transit; the new limit leaves no credit.
	slices.limitChanged("b", true);
	state.onGrant = () => {
		state.available = 0;
	};
	answer();
	await passTime(clock, 100);
	expect(await drawn).toBe("refused");
});

test("a lowered limit withdraws credit that was promised to a waiting request", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
	state.onGrant = ({ budget }) => {
		state.beforeReply = async () => (budget === "account" ? answered : undefined);
	};
	const drawn = drawOutcome(slices.draw(["key", "account"], usd(10)));
	await nextTurn();
	expect(slices.get("key")?.promised).toBe(usd(10));
	state.beforeReply = async () => {};
	slices.limitChanged("key", true);
	expect(slices.get("key")).toMatchObject({ free: usd(0), promised: usd(0) });
	// Ends the older promise, which must leave the credit that was promised after the change.
	const later = drawOutcome(slices.draw(["key"], usd(7)));
	await nextTurn();
	answer();
	expect([await drawn, await later]).toEqual(["drawn", "drawn"]);
	expect(slices.get("key")?.promised).toBe(usd(7));
	clock.advance(0);
	expect([slices.get("key")?.promised, slices.get("account")?.promised]).toEqual([usd(0), usd(0)]);
});

test("an instance draws only the credit that its requests need from a contested budget", async () => {
	const { slices, state, calls, clock } = scriptedSlices(1_000);
	state.contested = true;
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	const before = calls.length;
	await slices.draw(["b"], usd(10));
	const [asked] = calls.slice(before).find(({ kind }) => kind === "grant")?.requests ?? [];
	expect(asked).toMatchObject({ want: usd(10), min: usd(10) });
});

test("the total of all accounts' free credit is computed again every second", async () => {
	const { slices, clock } = scriptedSlices(Number.MAX_SAFE_INTEGER);
	for (let n = 0; n < 12_000; n++) {
		await slices.draw([n % 2 ? `acc_${n}` : `key${n}`], usd(1));
	}
	clock.advance(0);
	const free = [...slices.all()].reduce((sum, slice) => sum + (slice.budget.startsWith("acc_") ? slice.free : 0), 0);
	expect(slices.totals().free).toBe(0);
	clock.advance(1_000);
	clock.advance(1_000);
	expect(slices.totals().free).toBe(free);
});

test("a request that arrives while a recall is being sent causes another recall", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	state.onGrant = ({ ticket }) => {
		state.unanswered = ticket === null ? 1 : 0;
	};
	let sent = () => {};
	state.onRecall = async () => {
		if (state.recalled.length === 2) await new Promise<void>((resolve) => (sent = resolve));
		if (state.recalled.length === 3) state.available += 200;
	};
	const first = drawOutcome(slices.draw(["b"], usd(50)));
	await passTime(clock, 100);
	expect(state.recalled.length).toBe(2);
	const second = drawOutcome(slices.draw(["b"], usd(60)));
	await passTime(clock, 10);
	sent();
	await passTime(clock, 1_000);
	expect([await first, await second]).toEqual(["refused", "drawn"]);
	expect(state.recalled.length).toBe(3);
});

test("a request that arrives during the refused grant of another gets a second grant", async () => {
	const { slices, state, holdReplies } = scriptedSlices(5);
	const answer = holdReplies();
	const first = drawOutcome(slices.draw(["b"], usd(50)));
	await nextTurn();
	const second = drawOutcome(slices.draw(["b"], usd(60)));
	state.available = 100;
	answer();
	expect([await first, await second]).toEqual(["refused", "drawn"]);
});

test("a refused request tries again if freed credit has lowered the amount it needs", async () => {
	const { slices, holdReplies } = scriptedSlices(25);
	const answer = holdReplies();
	const drawn = drawOutcome(slices.draw(["b"], usd(50)));
	await nextTurn();
	const slice = slices.get("b");
	if (slice) slice.free = usd(30);
	answer();
	expect(await drawn).toBe("drawn");
});

test("a shortage is proved again after another request got a grant", async () => {
	const { slices, state, clock } = scriptedSlices(5);
	state.unanswered = 1;
	const large = drawOutcome(slices.draw(["b"], usd(50)));
	await passTime(clock, 60);
	expect(state.recalled.length).toBe(1);
	state.available += 10;
	const small = drawOutcome(slices.draw(["b"], usd(10)));
	await passTime(clock, 300);
	expect(await small).toBe("drawn");
	expect(state.recalled.length).toBeGreaterThanOrEqual(2);
	state.unanswered = 0;
	await passTime(clock, 300);
	expect(await large).toBe("refused");
});

test("an instance returns freed credit of a contested budget and draws none in advance", async () => {
	const { slices, state, calls, clock, sliceOf } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	await slices.answer("b", 1);
	const slice = sliceOf("b");
	const before = calls.length;
	slice.heldPeak = 100;
	slices.topUp(slice, clock.monotonicMs());
	await nextTurn();
	expect(calls.length).toBe(before);
	slice.free = usd(7);
	slices.settled(slice, clock.monotonicMs());
	await nextTurn();
	expect([slice.free, state.available]).toEqual([usd(0), 1_007]);
});

test("after `handBack` free credit returns at once, other credit once it is freed", async () => {
	const { slices, state, clock, sliceOf } = scriptedSlices(1_000);
	await slices.draw(["b"], usd(10));
	clock.advance(0);
	await slices.handBack();
	expect(state.available).toBe(1_000);
	const slice = sliceOf("b");
	clock.advance(60_000);
	slice.free = usd(7);
	slices.settled(slice, clock.monotonicMs());
	await nextTurn();
	expect([slice.free, state.available]).toEqual([usd(0), 1_007]);
});

test("`handBack` also returns a grant that arrives after the call", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	const replies: (() => void)[] = [];
	state.beforeReply = () => new Promise((resolve) => replies.push(resolve));
	const drawn = slices.draw(["key", "account"], usd(10));
	await nextTurn();
	const back = slices.handBack();
	state.beforeReply = async () => {};
	for (const reply of replies) reply();
	expect([await drawn, await back]).toEqual([null, true]);
	// The epoch has ended, so the instance does not keep the grant.
	await passTime(clock, 50);
	expect([slices.get("key")?.free, slices.get("account")?.free, state.available]).toEqual([usd(0), usd(0), 1_000]);
});

test("an instance with a grant of unknown outcome answers no recall", async () => {
	const { slices, state, calls, clock } = scriptedSlices(1_000);
	let fault: Error | undefined = new DatabaseTimeout("no answer");
	state.beforeReply = async () => {
		if (fault) throw fault;
	};
	const drawn = drawOutcome(slices.draw(["b"], usd(10)));
	await passTime(clock, 50);
	// The instance is fenced off, so it never learns whether its first attempt was granted.
	fault = new InstanceNotLive("fenced off");
	await passTime(clock, 200);
	expect(await drawn).toBe("service_unavailable");
	fault = undefined;
	await slices.answer("b", 1);
	await passTime(clock, 50);
	expect(calls.filter(({ kind }) => kind === "return")).toEqual([]);
	// The slice is kept even beyond the time after which idle slices are dropped.
	clock.advance(2 * 60_000);
	await slices.answer("b", 2);
	await passTime(clock, 50);
	expect(calls.filter(({ kind }) => kind === "return")).toEqual([]);
});

test("an account has a bounded number of waiting requests", async () => {
	const { slices, state, clock } = scriptedSlices(1_000);
	state.beforeReply = () => new Promise(() => {});
	const waiting = Array.from({ length: 10_000 }, () => drawOutcome(slices.draw(["b"], usd(1))));
	expect(await drawOutcome(slices.draw(["b"], usd(1)))).toBe("overloaded");
	slices.stop();
	expect(new Set(await Promise.all(waiting))).toEqual(new Set(["service_unavailable"]));
	clock.advance(0);
});
