import { expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { nextTurn as turn } from "../../src/base/time-slice.ts";
import { DatabaseBusy, DatabaseTimeout } from "../../src/db/outage.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { LeaseExceeded, type LedgerStore } from "../../src/ledger/store.ts";
import { createWriter } from "../../src/ledger/writer.ts";
import { ZERO_USD } from "../../src/money/nano-usd.ts";
import { generousStore } from "../support/generous-store.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { settledEvent } from "./fixture.ts";

function build({ batchMax = 10, flushAt = 10, queueMax = 100 } = {}) {
	const clock = createManualClock();
	const flushes: { settled: string[]; open: string[] }[] = [];
	const late: string[] = [];
	const state = {
		flush: async (_settled: readonly string[]): Promise<"ok" | "late"> => "ok",
		busy: new Set<string>(),
		/** Settlements that Postgres reports as new, by flush. */
		fresh: 0,
		settleLate: async (_id: string): Promise<void> => {},
	};
	const store: LedgerStore = {
		...generousStore(),
		async flush(events, openJson) {
			const settled = [...events].map(({ id }) => id);
			flushes.push({ settled, open: JSON.parse(openJson) as string[] });
			const answer = await state.flush(settled);
			return { late: answer === "late", fresh: state.fresh, busy: new Set(state.busy) };
		},
		async settleLate(json) {
			const { id } = JSON.parse(json) as { id: string };
			await state.settleLate(id);
			late.push(id);
			return ZERO_USD;
		},
	};
	const logged: { level: string; message: string }[] = [];
	const log = createLog({ level: "info", write: (line) => void logged.push(JSON.parse(line)) });
	const writer = createWriter({ store, clock, log }, { flushIntervalMs: 100, flushAt, batchMax, queueMax });
	const acknowledged: string[] = [];
	const ids: string[] = [];
	const acknowledge = (ticket: number) => void acknowledged.push(ids[ticket] as string);
	const events: SettledEvent[] = [];
	const settle = (id: string, account = `account ${id}`) => {
		ids.push(id);
		const event = settledEvent(account, `key ${id}`, 1, { id });
		events.push(event);
		writer.settle(event, acknowledge, ids.length - 1, clock.monotonicMs());
	};
	const pass = async (ms: number) => {
		await turn();
		clock.advance(ms);
		await turn();
	};
	return { clock, writer, state, flushes, late, acknowledged, events, settle, pass, logged };
}

test("the writer flushes settlements after the interval and then acknowledges them", async () => {
	const { settle, pass, flushes, acknowledged } = build();
	settle("a");
	settle("b");
	await pass(99);
	expect(flushes).toEqual([]);
	await pass(1);
	expect(flushes.map(({ settled }) => settled)).toEqual([["a", "b"]]);
	expect(acknowledged).toEqual(["a", "b"]);
});

test.each(["a call of hurry()", "a full batch"])(
	"%s starts the writer's next flush, whenever the previous flush ends",
	async (what) => {
		const flushed: number[] = [];
		for (let steps = 0; steps < 20; steps++) {
			const { settle, pass, state, flushes, writer } = build({ flushAt: 3 });
			let answer = () => {};
			state.flush = () => new Promise((resolve) => (answer = () => resolve("ok")));
			settle("first");
			writer.hurry();
			await turn();
			answer();
			for (let step = 0; step < steps; step++) await undefined;
			for (const id of ["a", "b", "c"]) settle(id);
			if (what === "a call of hurry()") writer.hurry();
			await pass(0);
			flushed.push(flushes.length);
		}
		expect(flushed).toEqual(flushed.map(() => 2));
	},
);

test("the writer flushes a full batch at once and running requests at their interval", async () => {
	const { settle, pass, flushes, writer } = build({ flushAt: 3 });
	writer.open({ slot: 0, json: () => '"long"', isOpen: () => true });
	for (const id of ["a", "b", "c", "d"]) settle(id);
	expect(flushes).toEqual([]);
	await pass(0);
	expect(flushes).toEqual([{ settled: ["a", "b", "c", "d"], open: [] }]);
	for (const id of ["e", "f"]) settle(id);
	await pass(99);
	expect(flushes.length).toBe(1);
	await pass(1);
	for (const id of ["g", "h", "i"]) settle(id);
	await pass(0);
	await pass(100);
	expect(flushes.slice(1)).toEqual([
		{ settled: ["e", "f"], open: [] },
		{ settled: ["g", "h", "i"], open: [] },
		{ settled: [], open: ["long"] },
	]);
});

test("the writer acknowledges a settlement when its batch is stored, not earlier", async () => {
	const { settle, pass, flushes, acknowledged, state, writer } = build();
	const answers: ((answer: "ok" | Error) => void)[] = [];
	state.flush = () =>
		new Promise((resolve, reject) => {
			answers.push((answer) => (answer === "ok" ? resolve(answer) : reject(answer)));
		});
	settle("a");
	await pass(100);
	settle("b");
	answers.shift()?.("ok");
	await pass(0);
	expect([acknowledged, writer.queued()]).toEqual([["a"], 1]);
	await pass(100);
	answers.shift()?.(new Error("refused"));
	await pass(0);
	settle("c");
	await pass(1_000);
	settle("d");
	for (let round = 0; round < 6; round++) {
		const sent = flushes.flatMap(({ settled }) => settled);
		expect(sent).toEqual(expect.arrayContaining(acknowledged));
		answers.shift()?.("ok");
		await pass(1_000);
	}
	expect(acknowledged).toEqual(["a", "b", "c", "d"]);
	expect(flushes.slice(0, 3).map(({ settled }) => settled.join(""))).toEqual(["a", "b", "b"]);
	expect([writer.queued(), writer.oldestAgeMs()]).toEqual([0, 0]);
});

test("the writer repeats a failed flush with the same settlements", async () => {
	const { settle, pass, flushes, acknowledged, state, writer } = build();
	let failures = 5;
	state.flush = async () => {
		if (failures-- > 0) throw new Error("refused");
		return "ok";
	};
	settle("a");
	for (let round = 0; round < 10; round++) await pass(1_000);
	expect(flushes.map(({ settled }) => settled)).toEqual(Array.from({ length: 6 }, () => ["a"]));
	expect(acknowledged).toEqual(["a"]);
	expect(writer.queued()).toBe(0);
});

test("the writer sends a settlement that is always refused after other settlements", async () => {
	const { settle, pass, acknowledged, state, writer } = build();
	state.flush = async (settled) => {
		if (settled.includes("bad")) throw new Error("a check was violated");
		return "ok";
	};
	for (const id of ["a", "bad", "b", "c", "d"]) settle(id);
	for (let round = 0; round < 40; round++) await pass(1_000);
	expect([...acknowledged].sort()).toEqual(["a", "b", "c", "d"]);
	expect(writer.queued()).toBe(1);
	state.flush = async () => "ok";
	for (let round = 0; round < 5; round++) await pass(1_000);
	expect(acknowledged).toContain("bad");
});

test("the writer logs an outage's start and end, and repeats the same batch", async () => {
	const { settle, pass, flushes, state, logged, acknowledged } = build();
	const outages = [
		Object.assign(new Error("the database system is starting up"), { code: "57P03" }),
		Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }),
		Object.assign(new Error("write CONNECTION_CLOSED"), { code: "CONNECTION_CLOSED" }),
		Object.assign(new Error("too many connections"), { code: "53300" }),
	];
	let calls = 0;
	state.flush = async () => {
		const error = outages[calls++ % outages.length];
		if (calls <= 20 && error !== undefined) throw error;
		return "ok";
	};
	for (const id of ["a", "b", "c"]) settle(id);
	for (let round = 0; round < 30; round++) await pass(1_000);
	expect(flushes.map(({ settled }) => settled)).toEqual(Array.from({ length: 21 }, () => ["a", "b", "c"]));
	expect(acknowledged).toEqual(["a", "b", "c"]);
	expect(logged.map(({ level, message }) => `${level} ${message}`)).toEqual([
		"warn Postgres is unavailable; settlements are queued",
		"info Postgres is available again; sending settlements",
	]);
});

test("the writer halves batches that time out, and logs no error", async () => {
	const { settle, pass, state, logged, acknowledged, writer } = build();
	state.flush = async (settled) => {
		if (settled.includes("locked")) throw new DatabaseTimeout("late");
		return "ok";
	};
	for (const id of ["locked", "a", "b", "c"]) settle(id);
	for (let round = 0; round < 40; round++) await pass(1_000);
	expect([...acknowledged].sort()).toEqual(["a", "b", "c"]);
	expect(writer.queued()).toBe(1);
	expect(logged.filter(({ level }) => level === "error")).toEqual([]);
});

test("the writer enlarges halved batches after success", async () => {
	const { settle, pass, flushes, state } = build({ batchMax: 8 });
	let failures = 2;
	state.flush = async () => {
		if (failures-- > 0) throw new Error("refused");
		return "ok";
	};
	for (let nth = 0; nth < 16; nth++) settle(`s${nth}`);
	for (let round = 0; round < 12; round++) await pass(1_000);
	expect(flushes.map(({ settled }) => settled.length)).toEqual([8, 4, 2, 2, 4, 8]);
});

test("the writer logs a repeated refusal as an error, and that a refusal ends an outage", async () => {
	const { settle, pass, state, logged } = build();
	let calls = 0;
	state.flush = async (settled) => {
		if (calls++ === 0) throw Object.assign(new Error("shutting down"), { code: "57P01" });
		if (settled.includes("bad")) throw Object.assign(new Error("a check was violated"), { code: "23514" });
		return "ok";
	};
	for (const id of ["bad", "a"]) settle(id);
	for (let round = 0; round < 12; round++) await pass(1_000);
	const lines = logged.map(({ level, message }) => `${level} ${message}`);
	expect(lines.slice(0, 3)).toEqual([
		"warn Postgres is unavailable; settlements are queued",
		"info Postgres is available again; sending settlements",
		"warn the database refused a flush; retrying",
	]);
	expect(
		lines.filter((line) => line.startsWith("error the database refuses a settlement repeatedly")),
	).not.toHaveLength(0);
});

test("the writer reports a full queue and the oldest settlement's age", async () => {
	const { settle, pass, state, writer } = build({ queueMax: 3 });
	state.flush = async () => {
		throw new Error("away");
	};
	settle("a");
	await pass(40);
	settle("b");
	expect(writer.isFull()).toBe(false);
	settle("c");
	expect(writer.isFull()).toBe(true);
	await pass(60);
	expect(writer.oldestAgeMs()).toBe(100);
	state.flush = async () => "ok";
	for (let round = 0; round < 8; round++) await pass(1_000);
	expect(writer.isFull()).toBe(false);
	expect(writer.oldestAgeMs()).toBe(0);
});

test("the writer sends a queue of several batches without a pause", async () => {
	const { settle, pass, flushes } = build({ batchMax: 2 });
	for (const id of ["a", "b", "c", "d", "e"]) settle(id);
	await pass(100);
	expect(flushes.map(({ settled }) => settled)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

test("the writer records a running request only if it outlasts a flush interval", async () => {
	const { writer, settle, pass, flushes } = build();
	let open = true;
	writer.open({ slot: 0, json: () => '"long"', isOpen: () => open });
	writer.open({ slot: 0, json: () => '"short"', isOpen: () => false });
	await pass(100);
	await pass(100);
	expect(flushes).toEqual([{ settled: [], open: ["long"] }]);
	writer.open({ slot: 0, json: () => '"later"', isOpen: () => open });
	await pass(100);
	open = false;
	settle("later");
	await pass(100);
	expect(flushes.at(-1)).toEqual({ settled: ["later"], open: [] });
});

test("the writer records a request that a client awaits with the next flush", async () => {
	const { writer, settle, pass, flushes, state } = build();
	let answer = () => {};
	state.flush = () => new Promise((resolve) => (answer = () => resolve("ok")));
	settle("a");
	writer.hurry();
	let known = false;
	writer.open({ slot: 0, json: () => '"r"', isOpen: () => true, acknowledge: () => (known = true) }, true);
	writer.hurry();
	answer();
	await pass(0);
	expect(flushes.length).toBe(2);
	expect(flushes[1]?.open).toEqual(["r"]);
	answer();
	await pass(0);
	expect(known).toBe(true);
});

test("the writer drops an ended request unless a client awaits the request's record", async () => {
	const { writer, pass, flushes } = build();
	let asked = 0;
	let known = false;
	const gone = { slot: 0, json: () => `"${++asked}"`, isOpen: () => true };
	const awaited = { slot: 0, json: () => '"awaited"', isOpen: () => false, acknowledge: () => (known = true) };
	writer.open(gone);
	writer.ended(gone);
	writer.open(awaited, true);
	writer.ended(awaited);
	await pass(100);
	expect(known).toBe(true);
	writer.open(gone);
	await pass(100);
	writer.ended(gone);
	await pass(100);
	expect([asked, flushes]).toEqual([0, []]);
});

test("the writer settles requests one by one as late when the leases are closed", async () => {
	const { settle, pass, late, acknowledged, state } = build();
	state.flush = async () => "late";
	settle("a");
	settle("b");
	await pass(100);
	expect(late).toEqual(["a", "b"]);
	expect(acknowledged).toEqual(["a", "b"]);
});

test("the writer sets settlements with a locked row aside, and retries them", async () => {
	const { settle, pass, acknowledged, state, writer, flushes } = build({ queueMax: 2 });
	state.busy.add("account held");
	settle("held");
	settle("free");
	await pass(100);
	expect(acknowledged).toEqual(["free"]);
	expect(writer.queued()).toBe(1);
	settle("more");
	expect(writer.isFull()).toBe(true);
	await pass(100);
	expect(acknowledged).toEqual(["free", "more"]);
	let drained = false;
	const draining = writer.drain().then(() => (drained = true));
	// Makes a flush fail; no settlement may be lost.
	state.flush = async () => {
		throw new Error("away");
	};
	for (let round = 0; round < 4; round++) await pass(1_000);
	expect([drained, writer.queued(), acknowledged.length]).toEqual([false, 1, 2]);
	state.flush = async () => "ok";
	for (let round = 0; round < 4; round++) await pass(1_000);
	expect([drained, acknowledged.length]).toEqual([false, 2]);
	state.busy.clear();
	for (let round = 0; round < 4; round++) await pass(1_000);
	await draining;
	expect(acknowledged).toEqual(["free", "more", "held"]);
	expect(flushes.at(-1)?.settled).toEqual(["held"]);
});

test("the writer's drain ends once Postgres has everything, and fails at a stop", async () => {
	const { settle, pass, writer, state, acknowledged } = build({ batchMax: 1 });
	for (const id of ["a", "b", "c"]) settle(id);
	await writer.drain();
	expect(acknowledged).toEqual(["a", "b", "c"]);
	state.flush = async () => {
		throw new Error("away");
	};
	settle("d");
	const drained = writer.drain().then(
		() => "drained",
		() => "stopped",
	);
	await pass(10);
	writer.stop();
	await pass(2_000);
	expect(await drained).toBe("stopped");
	expect(acknowledged).not.toContain("d");
});

test("the writer sends acknowledged settlements again and counts unknown ones", async () => {
	const { events, writer, state, flushes, settle, pass, acknowledged } = build();
	for (const id of ["a", "b"]) settle(id);
	await pass(100);
	expect(acknowledged).toEqual(["a", "b"]);
	state.fresh = 1;
	expect(await writer.sendAgain(events)).toBe(1);
	expect(flushes.map(({ settled }) => settled)).toEqual([
		["a", "b"],
		["a", "b"],
	]);
	writer.stop();
});

test("the writer settles charges as late if the database lost credit of the lease", async () => {
	const { events, writer, state, flushes, late, settle, pass, acknowledged, logged } = build();
	const forgetful = async (settled: readonly string[]): Promise<"ok"> => {
		if (settled.some((id) => id.startsWith("forgotten"))) throw new LeaseExceeded("more than the lease holds");
		return "ok";
	};
	state.flush = forgetful;
	state.fresh = 1;
	for (const id of ["forgotten 1", "known", "forgotten 2"]) settle(id);
	await pass(100);
	expect(flushes.map(({ settled }) => settled)).toEqual([
		["forgotten 1", "known", "forgotten 2"],
		["forgotten 1"],
		["known"],
		["forgotten 2"],
	]);
	expect(late).toEqual(["forgotten 1", "forgotten 2"]);
	expect(acknowledged).toEqual(["forgotten 1", "known", "forgotten 2"]);
	expect(logged.map(({ level }) => level)).toEqual(["error"]);
	// Sends settlements to a server that lacks them all; a row is locked at the first try.
	let isHeld = true;
	state.settleLate = async () => {
		const wasHeld = isHeld;
		isHeld = false;
		if (wasHeld) throw new DatabaseBusy("a row that the statement needs is held");
	};
	const again = writer.sendAgain(events);
	await pass(1_000);
	expect(await again).toBe(3);
	expect(late).toEqual(["forgotten 1", "forgotten 2", "forgotten 2", "forgotten 1"]);
	writer.stop();
});

test("the writer's sendAgain retries after locked rows and failed statements", async () => {
	const { events, writer, state, flushes, settle, pass } = build();
	for (const id of ["a", "b"]) settle(id);
	await pass(100);
	state.busy = new Set(["account b"]);
	const again = writer.sendAgain(events);
	await pass(0);
	state.busy.clear();
	state.flush = async () => {
		throw new Error("connection lost");
	};
	await pass(1_000);
	state.flush = async () => "ok";
	await pass(1_000);
	await again;
	expect(flushes.map(({ settled }) => settled).slice(1)).toEqual([["a", "b"], ["b"], ["b"]]);
	writer.stop();
});
