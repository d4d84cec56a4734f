import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createTickBarrier } from "../../src/base/time-slice.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { createAnswerMemory } from "../../src/upstream/call/answer-memory.ts";
import { createOpenCalls } from "../../src/upstream/call/guard.ts";
import type { FetchFunction } from "../../src/upstream/call/post.ts";
import { sendWithReplays } from "../../src/upstream/call/replay.ts";
import { UnaryTries } from "../../src/upstream/call/unary.ts";
import { unstreamedChat } from "../../src/upstream/chat/chat-call.ts";
import type { Replica } from "../../src/upstream/replicas/replica.ts";
import type { Ticket } from "../../src/upstream/replicas/ticket.ts";
import { chatCall, limitsWith, modelOver } from "../support/upstream-catalog.ts";
import { NONE, now, setUpPool } from "./pool-world.ts";

function setUp(maxConcurrency: number, dialect: DialectName = "vllm", more: { accountShare?: number } = {}) {
	const limits = { queueLengthMax: 10, accountShare: limitsWith({}).accountShare, ...more };
	const { clock, pool, acquire, take } = setUpPool([maxConcurrency], limits, dialect);
	type More = { patient?: boolean; onAsked?: () => void; signal?: AbortSignal };
	return {
		...{ clock, pool },
		ask: (accountId: string, more: More = {}) => acquire({ accountId, ...more }),
		take: (accountId: string, more: More = {}) => take({ accountId, ...more }),
	};
}

test("batch lines leave an eighth of a model's places free", async () => {
	for (const [places, lines] of [
		[16, 14],
		[4, 3],
		[2, 1],
		[1, 1],
	] as const) {
		const { ask, take, pool } = setUp(places);
		expect(await pool.room(() => 0, AbortSignal.timeout(1_000))).toBe(lines);
		for (let line = 0; line < lines; line += 1) take("batch", { patient: true });
		expect(await now(ask("batch", { patient: true }))).toBe("pending");
		for (let request = lines; request < places; request += 1) take("other");
	}
});

test("a batch line lets all other requests pass it, without a time limit", async () => {
	const { clock, ask, take } = setUp(1);
	const first = take("a");
	const line = ask("batch", { patient: true });
	clock.advance(500);
	const request = ask("b");
	clock.advance(900);
	first.release("ok");
	const served = (await now(request)) as Ticket;
	expect(served.replica).toBeDefined();
	expect(await now(line)).toBe("pending");
	clock.advance(24 * 3_600_000);
	expect(await now(line)).toBe("pending");
	served.release("ok");
	expect(await now(line)).not.toBe("pending");
});

test("a batch line waits while a request waits because of its account's share", async () => {
	const { ask, take } = setUp(8, "vllm", { accountShare: 0.25 });
	const [first] = [take("a"), take("a")];
	const request = ask("a");
	expect(await now(request)).toBe("pending");
	const line = ask("batch", { patient: true });
	expect(await now(line)).toBe("pending");
	first.release("ok");
	expect(await now(request)).not.toBe("pending");
	expect(await now(line)).not.toBe("pending");
});

test("each waiting request interrupts one batch line", async () => {
	const { ask, take } = setUp(2);
	const asked: number[] = [];
	const lines = [0].map((at) => take("batch", { patient: true, onAsked: () => asked.push(at) }));
	take("a");
	expect(asked).toEqual([]);
	const request = ask("b");
	expect(asked).toEqual([0]);
	const another = ask("c");
	expect(asked).toEqual([0]);
	lines[0]?.release("neutral");
	expect(await now(request)).not.toBe("pending");
	expect(await now(another)).toBe("pending");
});

test("batch lines with dialect openai or without `onAsked` are never interrupted", async () => {
	const slow = setUp(1, "openai");
	let asked = 0;
	const line = slow.take("batch", { patient: true, onAsked: () => (asked += 1) });
	const request = slow.ask("a");
	expect(asked).toBe(0);
	line.release("ok");
	expect(await now(request)).not.toBe("pending");
	const quick = setUp(1);
	quick.take("batch", { patient: true });
	expect(await now(quick.ask("a"))).toBe("pending");
});

test("places of batch lines do not count for the account's share", async () => {
	const { ask, take } = setUp(1);
	let asked = 0;
	const line = take("same", { patient: true, onAsked: () => (asked += 1) });
	const request = ask("same");
	expect(asked).toBe(1);
	line.release("neutral");
	expect(await now(request)).not.toBe("pending");
});

test("`room` resolves once there are more free places than batch lines being sent", async () => {
	const { take, pool } = setUp(2);
	const [first, second] = [take("a"), take("b")];
	let onRoad = 1;
	const room = pool.room(() => onRoad, new AbortController().signal);
	first.release("ok");
	expect(await now(room)).toBe("pending");
	second.release("ok");
	expect(await now(room)).toBe("pending");
	onRoad = 0;
	pool.wake();
	expect(await now(room)).toBe(1);
	take("a");
	const leaving = new AbortController();
	const given = pool.room(() => 0, leaving.signal);
	leaving.abort(new Error("enough"));
	await expect(given).rejects.toThrow("enough");
});

test("`room` rejects if the model is removed", async () => {
	const { pool, take } = setUp(1);
	take("a");
	const room = pool.room(() => 0, new AbortController().signal);
	expect(await now(room)).toBe("pending");
	pool.close();
	expect(await now(room.catch((error) => error))).toMatchObject({ code: "service_unavailable" });
});

test("a batch line yields its place even in the event-loop turn in which it got it", async () => {
	const { pool, ask, take } = setUp(1);
	const first = take("a");
	const fetch: FetchFunction = (_url, { signal }) =>
		new Promise((_, reject) => {
			const abort = () => reject(signal?.reason);
			if (signal?.aborted) abort();
			else signal?.addEventListener("abort", abort);
		});
	const tickBarrier = createTickBarrier();
	const limits = () => limitsWith({});
	const answers = createAnswerMemory({ clock: systemClock }, { limits });
	const deps = { clock: systemClock, fetch, openCalls: createOpenCalls(systemClock), answers, tickBarrier };
	const leaving = new AbortController();
	const call = chatCall({ accountId: "batch", patient: true, signal: leaving.signal });
	const tries = new UnaryTries(deps, limits, unstreamedChat(modelOver([]), call, call));
	const line = sendWithReplays(pool, silentLog, call, tries);
	line.catch(() => {});
	expect(pool.replicas()[0]?.inFlight()).toBe(1);
	// Releases the place without a verdict, as a failed request does that is sent again.
	first.release("neutral");
	const request = ask("a");
	// In this event-loop turn the waiting batch line would be sent.
	await tickBarrier();
	expect(await now(Promise.resolve(request).then(() => "served"))).toBe("served");
	leaving.abort();
});

test("`room` resolves when the breaker's cool-down ends, even without a request", async () => {
	const { clock, pool, take } = setUp(4);
	for (let failed = 0; failed < 2; failed += 1) take("batch", { patient: true }).release("failed");
	expect(pool.replicas()[0]?.view().breaker).toBe("open");
	const room = pool.room(() => 0, new AbortController().signal);
	expect(await now(room)).toBe("pending");
	clock.advance(6_000);
	expect(await now(room)).toBeGreaterThan(0);
	clock.advance(1_000);
	expect(clock.pending()).toBe(0);
});

test("a batch line whose account is refused does not block other accounts", async () => {
	const limits = { queueLengthMax: 10, accountShare: limitsWith({}).accountShare, breakerCoolMs: 10_000 };
	const { acquire, replicas } = setUpPool([1, 1], limits);
	const [first, second] = replicas as [Replica, Replica];
	first.setHealth("up");
	const ask = (accountId: string, patient: boolean, exclude = NONE) => acquire({ accountId, patient, exclude });
	for (let failure = 0; failure < 2; failure += 1)
		(ask("fails", false, new Set([second])) as Ticket).release("suspect");
	expect([first.usable("fails"), first.usable("other")]).toEqual([false, true]);
	const held = ["one", "two"].map((accountId) => ask(accountId, false)) as Ticket[];
	const fails = [1, 2, 3].map(() => ask("fails", true));
	const others = [1, 2, 3].map(() => ask("other", true));
	for (const line of [...fails, ...others]) expect(await now(line)).toBe("pending");
	// Releases without a verdict, because an answer would clear the account's failures.
	held.find(({ replica }) => replica === first)?.release("neutral");
	for (const line of others) {
		const ticket = await now(line);
		expect(ticket === "pending" ? ticket : ticket.replica.alias).toBe("m#0");
		(ticket as Ticket).release("neutral");
	}
	for (const line of fails) expect(await now(line)).toBe("pending");
});
