import { describe, expect, test } from "bun:test";
import { createPool } from "../../src/upstream/replicas/pool.ts";
import { routedPrompt } from "../../src/upstream/replicas/prompt-prefix.ts";
import type { Replica } from "../../src/upstream/replicas/replica.ts";
import type { Ticket } from "../../src/upstream/replicas/ticket.ts";
import { limitsWith } from "../support/upstream-catalog.ts";
import { NONE, now, setUpPool } from "./pool-world.ts";

/** A streamed prompt of 8,000 characters that shares no beginning with other prompts. */
const promptOf = (name: string) => routedPrompt(`${name} `.repeat(8_000).slice(0, 8_000), 1n, true);

/** The error that `ask` throws synchronously. `toThrow` would also accept a rejected promise. */
function refusalOf(ask: () => unknown): unknown {
	try {
		return ask() instanceof Promise ? "waits" : "has a place";
	} catch (error) {
		return error;
	}
}

test("a waiting request is served although a trial call takes minutes", async () => {
	const { clock, replicas, take, acquire } = setUpPool([16], { queueWaitMs: 10_000 });
	replicas[0]?.setHealth("up");
	// Failures of two accounts open the circuit breaker. One of these accounts sends the first trial request.
	for (const accountId of ["acc_one", "acc_two"]) take({ accountId }).release("suspect");
	clock.advance(5_000);
	take({ accountId: "acc_one" });
	const waiting = acquire();
	expect(await now(waiting as Promise<Ticket>)).toBe("pending");
	clock.advance(6_000);
	const served = (await now(waiting as Promise<Ticket>)) as Ticket;
	served.answered();
	expect(replicas[0]?.view().breaker).toBe("closed");
	expect(refusalOf(() => take())).toBe("has a place");
});

describe("the choice of a replica for a request", () => {
	test("prefers the replica with the smallest fraction of occupied places", () => {
		const { take, replicas } = setUpPool([2, 8]);
		for (let call = 0; call < 10; call += 1) take();
		expect(replicas.map((replica) => replica.inFlight())).toEqual([2, 8]);
	});

	test("alternates between equally busy replicas", () => {
		const { take } = setUpPool([100, 100, 100]);
		const used = new Set(
			[1, 2, 3].map(() => {
				const ticket = take();
				ticket.release("ok");
				return ticket.replica.alias;
			}),
		);
		expect(used.size).toBe(3);
	});

	test("sends a prompt to the replica that cached it", () => {
		const { take, clock } = setUpPool([64, 64, 64]);
		const homes = Array.from({ length: 60 }, (_, nth) => {
			const aliases = [1, 2, 3].map(() => {
				const ticket = take({ routed: promptOf(`conversation ${nth}`) });
				clock.advance(100);
				ticket.answered();
				ticket.release("ok");
				return ticket.replica.alias;
			});
			expect(new Set(aliases).size).toBe(1);
			return aliases[0];
		});
		expect(new Set(homes).size).toBe(3);
	});

	test.each([
		{ waiting: 0, returns: false },
		{ waiting: 3, returns: true },
	])("uses the replica that cached the prompt if $waiting prompts wait at each: $returns", ({ waiting, returns }) => {
		const { take, clock, replicas } = setUpPool([64, 64, 64, 64]);
		const sendTo = (only: Replica, name: string) =>
			take({ routed: promptOf(name), exclude: new Set(replicas.filter((replica) => replica !== only)) });
		const first = take({ routed: promptOf("x") });
		clock.advance(200);
		first.answered();
		for (const replica of replicas)
			for (let nth = 0; nth < waiting; nth += 1) sendTo(replica, `${replica.alias} ${nth}`);
		for (const name of ["y", "z"]) sendTo(first.replica, name);
		expect(take({ routed: promptOf("x") }).replica === first.replica).toBe(returns);
	});

	test("avoids a replica that cached the prompt but sends no first tokens", () => {
		const { take, clock, replicas } = setUpPool([256, 256]);
		const first = take({ routed: promptOf("x") });
		clock.advance(200);
		first.answered();
		const exclude = new Set(replicas.filter((replica) => replica !== first.replica));
		for (let nth = 0; nth < 20; nth += 1) take({ routed: promptOf(`${nth}`), exclude });
		clock.advance(2_700);
		expect(take({ routed: promptOf("x") }).replica).not.toBe(first.replica);
	});

	test("avoids a replica that cached the prompt but is busier by a quarter", () => {
		const { take, clock } = setUpPool([8, 8]);
		const taken = Array.from({ length: 8 }, () => {
			const ticket = take({ routed: promptOf("x") });
			clock.advance(10);
			ticket.answered();
			return ticket.replica.alias;
		});
		expect(taken.slice(0, 3)).toEqual(Array(3).fill(taken[0]));
		expect(taken.filter((alias) => alias === taken[0]).length).toBeWithin(4, 6);
	});

	test("changes only for the prompts of a removed replica", () => {
		const { take, pool, replicas } = setUpPool([8, 8, 8]);
		const homeOf = (nth: number) => {
			const ticket = take({ routed: promptOf(`${nth}`) });
			ticket.release("ok");
			return ticket.replica;
		};
		const prompts = Array.from({ length: 40 }, (_, nth) => nth);
		const before = prompts.map(homeOf);
		pool.replace(replicas.slice(1));
		const after = prompts.map(homeOf);
		for (const at of prompts) if (before[at] !== replicas[0]) expect(after[at]).toBe(before[at] as Replica);
	});

	test("skips excluded, unreachable and draining replicas", () => {
		const { acquire, take, pool, replicas } = setUpPool([8, 8]);
		const [a, b] = replicas as [Replica, Replica];
		expect(take({ exclude: new Set([a]) }).replica).toBe(b);
		a.setHealth("down");
		for (let call = 0; call < 4; call += 1) expect(take().replica).toBe(b);
		expect(refusalOf(() => acquire({ exclude: new Set([b]) }))).toMatchObject({ code: "service_unavailable" });
		pool.replace([a]);
		expect(refusalOf(() => acquire())).toMatchObject({ code: "service_unavailable" });
	});

	test("closes the breaker at the first event of a trial", () => {
		const { clock, take, replicas } = setUpPool([10]);
		const failing = [take(), take()];
		for (const ticket of failing) ticket.release("failed");
		clock.advance(5_000);
		const trial = take();
		expect(replicas[0]?.view().breaker).toBe("half_open");
		trial.answered();
		expect(replicas[0]?.view().breaker).toBe("closed");
		for (const ticket of [trial, take()]) ticket.release("ok");
	});

	test("permits other accounts a replica that failed for some accounts", () => {
		const { take, replicas } = setUpPool([10]);
		replicas[0]?.setHealth("up");
		for (let call = 0; call < 4; call += 1) take().answered();
		const plot = ["acc_one", "acc_two"].map((accountId) => take({ accountId }));
		for (const ticket of plot) ticket.release("suspect");
		expect(replicas[0]?.view().breaker).toBe("open");
		take().answered();
		expect(replicas[0]?.view().breaker).toBe("closed");
		for (let call = 0; call < 5; call += 1) take();
		expect(replicas[0]?.inFlight()).toBe(10);
	});
});

describe("the last resort, a call to a replica that failed recently", () => {
	const UNAVAILABLE = { code: "service_unavailable" };

	test("sends at most one request per second", () => {
		const { clock, take, acquire, replicas } = setUpPool([10], { breakerCoolMs: 60_000, breakerCoolMsMax: 60_000 });
		for (const ticket of [take(), take()]) ticket.release("failed");
		for (let second = 0; second < 5; second += 1) {
			expect(refusalOf(acquire)).toMatchObject({ ...UNAVAILABLE, retryAfterS: 60 });
			clock.advance(999);
			expect(refusalOf(acquire)).toMatchObject(UNAVAILABLE);
			clock.advance(1);
			take({ accountId: `acc_${second}` }).release("failed");
		}
		clock.advance(1_000);
		const trial = take();
		expect(acquire({ accountId: "acc_waits" })).toBeInstanceOf(Promise);
		trial.answered();
		trial.release("ok");
		expect(replicas[0]?.inFlight()).toBe(1);
	});

	test("sends a second request after five seconds", () => {
		const { clock, take, acquire } = setUpPool([10], { breakerCoolMs: 60_000, breakerCoolMsMax: 60_000 });
		const bad = { accountId: "acc_bad" };
		for (const ticket of [take(bad), take(bad)]) ticket.release("suspect");
		clock.advance(1_000);
		take(bad);
		clock.advance(4_999);
		expect(refusalOf(() => acquire(bad))).toMatchObject(UNAVAILABLE);
		clock.advance(1);
		take(bad);
		// The remaining eight places are still available to other accounts.
		for (let call = 0; call < 8; call += 1) take();
	});

	test("is not blocked by clients that disconnect", () => {
		const { clock, take, acquire, replicas } = setUpPool([10]);
		const held = Array.from({ length: 6 }, () => take({ accountId: "acc_leaves" }));
		replicas[0]?.setHealth("down", true);
		for (const ticket of held.slice(0, 3)) {
			clock.advance(333);
			ticket.release("neutral");
		}
		expect(refusalOf(acquire)).toMatchObject(UNAVAILABLE);
		clock.advance(1);
		take({ accountId: "acc_leaves" }).release("neutral");
		clock.advance(999);
		for (const ticket of held.slice(3)) ticket.release("neutral");
		expect(refusalOf(acquire)).toMatchObject(UNAVAILABLE);
		clock.advance(1);
		take();
	});

	test("does not use up the trial call of another account", () => {
		const { clock, take, acquire, replicas } = setUpPool([10], { breakerCoolMs: 60_000, breakerCoolMsMax: 60_000 });
		replicas[0]?.setHealth("up");
		const plot = ["acc_one", "acc_two"].map((accountId) => take({ accountId }));
		for (const ticket of plot) ticket.release("suspect");
		clock.advance(1_000);
		take({ accountId: "acc_one" });
		expect(refusalOf(() => acquire({ accountId: "acc_two" }))).toMatchObject(UNAVAILABLE);
		take().answered();
		take({ accountId: "acc_two" });
	});

	test("is not used if another replica or waiting is possible", () => {
		const { clock, pool, take, acquire, replicas } = setUpPool([10, 10], {
			breakerCoolMs: 60_000,
			breakerCoolMsMax: 60_000,
		});
		const [a, b] = replicas as [Replica, Replica];
		for (const ticket of [take({ exclude: new Set([b]) }), take({ exclude: new Set([b]) })]) ticket.release("failed");
		clock.advance(5_000);
		for (let call = 0; call < 10; call += 1) expect(take().replica).toBe(b);
		pool.replace([a]);
		expect(refusalOf(() => acquire({ exclude: new Set([a]) }))).toMatchObject(UNAVAILABLE);
		const line = { routed: undefined, exclude: NONE, signal: new AbortController().signal, accountId: "acc_test" };
		expect(refusalOf(() => pool.acquire({ ...line, patient: true }))).toMatchObject(UNAVAILABLE);
	});

	test("uses replicas that report to be down, but no unreachable replicas", () => {
		const { clock, take, acquire, replicas } = setUpPool([10]);
		const [replica] = replicas as [Replica];
		replica.setHealth("down", true);
		expect(refusalOf(acquire)).toMatchObject(UNAVAILABLE);
		clock.advance(1_000);
		take().answered();
		expect(replica.health()).toBe("up");
		replica.setHealth("down");
		clock.advance(60_000);
		expect(refusalOf(acquire)).toMatchObject(UNAVAILABLE);
	});
});

describe("the queue for places", () => {
	test("serves requests in order of arrival", async () => {
		const { acquire, take, replicas } = setUpPool([1]);
		const first = take();
		const order: string[] = [];
		const waiting = ["b", "c"].map((name) =>
			Promise.resolve(acquire()).then((ticket) => {
				order.push(name);
				return ticket;
			}),
		);
		expect(replicas[0]?.inFlight()).toBe(1);
		first.release("ok");
		const second = await (waiting[0] as Promise<Ticket>);
		expect(order).toEqual(["b"]);
		expect(replicas[0]?.inFlight()).toBe(1);
		second.release("ok");
		second.release("ok");
		await waiting[1];
		expect(order).toEqual(["b", "c"]);
		expect(replicas[0]?.inFlight()).toBe(1);
	});

	test("gives a waiting request a place that a timer freed", async () => {
		const { clock, acquire, take, replicas } = setUpPool([10], { queueWaitMs: 60_000 });
		for (const ticket of [take(), take()]) ticket.release("failed");
		clock.advance(5_000);
		take();
		clock.advance(500);
		const early = Promise.resolve(acquire());
		expect(await now(early)).toBe("pending");
		clock.advance(4_500);
		const late = acquire();
		expect(late).toBeInstanceOf(Promise);
		expect(await now(early)).toMatchObject({ replica: replicas[0] as Replica });
		expect(await now(Promise.resolve(late))).toBe("pending");
	});

	test("refuses as `overloaded` beyond its length and after its deadline", async () => {
		const { clock, acquire, take, pool } = setUpPool([1]);
		take();
		const waiting = [acquire(), acquire(), acquire()].map((place) => Promise.resolve(place).catch((error) => error));
		expect(refusalOf(() => acquire())).toMatchObject({ code: "overloaded", retryAfterS: 1 });
		clock.advance(999);
		expect(pool.waiting()).toBe(3);
		clock.advance(1);
		expect(await Promise.all(waiting)).toEqual(
			Array(3).fill(expect.objectContaining({ code: "overloaded", retryAfterS: 1 })),
		);
		expect(pool.waiting()).toBe(0);
		// The timer that serves waiting requests is not set again.
		clock.advance(1_000);
		expect(clock.pending()).toBe(0);
	});

	test("drops a request whose client disconnects", async () => {
		const { acquire, take, pool } = setUpPool([1]);
		const held = take();
		const leave = new AbortController();
		const gone = Promise.resolve(acquire({ signal: leave.signal })).catch((error) => error);
		const next = Promise.resolve(acquire());
		leave.abort();
		expect(await gone).toMatchObject({ name: "AbortError" });
		expect(pool.waiting()).toBe(1);
		held.release("ok");
		expect((await next).replica.alias).toBe("m#0");
	});

	test("refuses waiting requests when the last usable replica fails", async () => {
		const { clock, acquire, take, pool, replicas } = setUpPool([1, 1]);
		const [a, b] = replicas as [Replica, Replica];
		b.setHealth("down");
		const call = take();
		const hopeful = Promise.resolve(acquire());
		b.setHealth("up");
		pool.wake();
		expect((await hopeful).replica).toBe(b);
		b.setHealth("down");
		const hopeless = Promise.resolve(acquire()).catch((error) => error);
		call.release("failed");
		const again = await now(hopeless);
		expect(again).toMatchObject({ replica: a });
		(again as Ticket).release("failed");
		expect(refusalOf(() => acquire())).toMatchObject({ code: "service_unavailable", retryAfterS: 5 });
		clock.advance(5_000);
		expect(take().replica).toBe(a);
	});

	test("lets later requests pass a request that excludes the free replica", async () => {
		const { acquire, take, replicas } = setUpPool([1, 1]);
		const [a, b] = replicas as [Replica, Replica];
		const onA = take({ exclude: new Set([b]) });
		take({ exclude: new Set([a]) });
		const picky = Promise.resolve(acquire({ exclude: new Set([a]) }));
		const easy = Promise.resolve(acquire());
		onA.release("ok");
		expect((await easy).replica).toBe(a);
		expect(await now(picky)).toBe("pending");
	});
});

describe("the fairness between accounts", () => {
	/** `wait` queues requests of one account. `served` lists them as they get their places. */
	function setUp(...given: Parameters<typeof setUpPool>) {
		const parts = setUpPool(...given);
		const served: { who: string; ticket: Ticket }[] = [];
		const wait = (who: string, count = 1) =>
			Array.from({ length: count }, () =>
				Promise.resolve(parts.acquire({ accountId: who })).then(
					(ticket) => void served.push({ who, ticket }),
					(error) => void served.push({ who: `${who} ${error.code}`, ticket: undefined as never }),
				),
			);
		return { ...parts, served, wait };
	}
	const turn = () => new Promise((resolve) => setImmediate(resolve));

	test("serves the first request of another account next", async () => {
		const { take, served, wait } = setUp([1], { queueLengthMax: 2_000 });
		const first = take({ accountId: "flood" });
		wait("flood", 1_500);
		wait("small");
		first.release("ok");
		await turn();
		expect(served.map(({ who }) => who)).toEqual(["small"]);
	});

	test("serves the account with the fewest places first", async () => {
		const { take, served, wait } = setUp([4], { queueLengthMax: 100 });
		const held = [1, 2, 3, 4].map(() => take({ accountId: "a" }));
		wait("a", 5);
		wait("b", 5);
		wait("c", 5);
		for (const ticket of held) ticket.release("ok");
		await turn();
		// Before each of these four grants, account A has three, two, one and no places.
		expect(served.map(({ who }) => who)).toEqual(["b", "c", "b", "a"]);
		const gone = served.splice(0);
		// C's request is the oldest, so C gets the first place that B returns. B then has none and gets the second.
		for (const { who, ticket } of gone) if (who === "b") ticket.release("ok");
		await turn();
		expect(served.map(({ who }) => who)).toEqual(["c", "b"]);
	});

	test("gives an account at most its share, and at least one place", async () => {
		for (const [places, mine] of [
			[[8], 6],
			[[2, 2], 3],
			[[2], 1],
			[[1], 1],
		] as const) {
			const { take, served, wait } = setUp(places, { accountShare: 0.75, queueLengthMax: 20 });
			wait("greedy", 10);
			await turn();
			expect([places, served.length]).toEqual([places, mine]);
			const others = places.reduce((sum, count) => sum + count, 0) - mine;
			for (let nth = 0; nth < others; nth += 1) take({ accountId: `other ${nth}` });
			// An account with its full share does not get a place that another account releases.
			served[0]?.ticket.release("ok");
			await turn();
			expect(served.length).toBe(mine + 1);
		}
	});

	test("leaves a sixteenth of the places to accounts without a place", async () => {
		const { take, pool, served, wait } = setUp([16, 16], { accountShare: 0.75, queueLengthMax: 90 });
		for (const who of ["a", "b"]) wait(who, 20);
		await turn();
		expect([served.length, pool.contended()]).toEqual([30, true]);
		for (const who of ["new", "other"]) take({ accountId: who });
		// The freed place refills the sixteenth for accounts without a place, so no waiting request gets it.
		served[0]?.ticket.release("ok");
		await turn();
		expect(served.length).toBe(30);
	});

	test("counts no calls at removed replicas when it reserves the last sixteenth", () => {
		const parts = setUpPool([16, 16], { accountShare: 0.75 });
		const [a, b] = parts.replicas as [Replica, Replica];
		for (let nth = 0; nth < 16; nth += 1) parts.take({ accountId: `${nth}`, exclude: new Set([b]) });
		a.setHealth("down");
		for (let nth = 0; nth < 15; nth += 1) expect(parts.take({ accountId: `${nth}` }).replica).toBe(b);
		expect(parts.acquire({ accountId: "15" })).toBeInstanceOf(Promise);
		parts.take({ accountId: "new" });
	});

	test("does not read the queues of all accounts while only the last sixteenth is free", async () => {
		const { clock, replicas } = setUpPool([32]);
		const limits = limitsWith({ accountShare: 0.75, queueLengthMax: 500 });
		let looks = 0;
		const pool = createPool(
			{ clock },
			{
				limits() {
					looks += 1;
					return limits;
				},
			},
		);
		pool.replace(replicas);
		const acquire = (accountId: string) =>
			pool.acquire({ routed: undefined, exclude: NONE, signal: new AbortController().signal, accountId });
		for (let nth = 0; nth < 330; nth += 1) acquire(`${nth % 30}`);
		expect(pool.waiting()).toBe(300);
		looks = 0;
		(acquire("new") as Ticket).release("ok");
		expect(looks).toBeLessThan(20);
	});

	test("applies the share to the current number of places", async () => {
		const parts = setUpPool([4, 4], { accountShare: 0.75 });
		const [a] = parts.replicas as [Replica, Replica];
		for (let nth = 0; nth < 3; nth += 1) parts.take({ accountId: "x" });
		a.setHealth("down");
		expect(parts.acquire({ accountId: "x" })).toBeInstanceOf(Promise);
		expect(parts.take({ accountId: "y" }).replica).toBe(parts.replicas[1] as Replica);
	});

	test("does not let a request above its account's share block other requests", async () => {
		const { acquire, pool, served, wait } = setUp([4], { accountShare: 0.5 });
		wait("greedy", 3);
		await turn();
		expect([served.length, pool.waiting(), pool.contended()]).toEqual([2, 1, false]);
		const early = Promise.resolve(acquire({ accountId: "other" }));
		expect(await now(early)).not.toBe("pending");
		wait("third", 1);
		await turn();
		expect([served.length, pool.contended()]).toEqual([3, true]);
	});

	test("refuses the newest request of the account with the longest queue if the queue is full", async () => {
		const { take, acquire, pool, served, wait } = setUp([1], { queueLengthMax: 3 });
		const held = take({ accountId: "flood" });
		wait("flood", 3);
		expect(refusalOf(() => acquire({ accountId: "flood" }))).toMatchObject({ code: "overloaded" });
		wait("small");
		await turn();
		expect(served.map(({ who }) => who)).toEqual(["flood overloaded"]);
		wait("third");
		await turn();
		expect(served.map(({ who }) => who)).toEqual(["flood overloaded", "flood overloaded"]);
		// Every account has one waiting request, so no account has a longer queue that could lose one.
		expect(refusalOf(() => acquire({ accountId: "fourth" }))).toMatchObject({ code: "overloaded" });
		held.release("ok");
		await turn();
		expect([served.at(-1)?.who, pool.waiting()]).toEqual(["small", 2]);
	});

	test("does not let a refused account block others in the queue", async () => {
		const { take, served, wait } = setUp([2], { queueLengthMax: 10, queueWaitMs: 60_000 });
		const poison = [1, 2].map(() => take({ accountId: "poison" }));
		wait("poison");
		wait("good");
		for (const ticket of poison) ticket.release("suspect");
		await turn();
		expect(served.some(({ who }) => who === "good")).toBe(true);
	});
});
