import { expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import {
	type BooksHistory,
	type BooksRun,
	createBooksHistory,
	createReconciler,
	reconcile,
} from "../../src/ledger/reconciler.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const MINUTE_MS = 60_000;

/** Instances with one clock and one history of checks. The next check's result is `books.ok`. */
function world() {
	const clock = createManualClock();
	const books = { ok: true, checks: 0 };
	const rows: BooksRun[] = [];
	const history: BooksHistory = {
		async add(result, by) {
			const run = { ...result, id: `rec_${rows.length}`, atMs: clock.wallMs(), by };
			rows.push(run);
			return run;
		},
		newest: async (withinMs) => rows.findLast((run) => run.atMs > clock.wallMs() - withinMs),
	};
	const said: string[] = [];
	const log = createLog({ level: "warn", write: (line) => void said.push(JSON.parse(line).message) });
	let hold: Promise<void> | undefined;
	const instance = (random = 0) =>
		createReconciler({
			random: () => random,
			async check() {
				books.checks += 1;
				const { ok } = books;
				await hold;
				return { ok, checks: [] };
			},
			history,
			clock,
			log,
		});
	const pass = async (ms: number) => {
		for (let left = ms; left > 0; left -= MINUTE_MS / 2) {
			clock.advance(Math.min(left, MINUTE_MS / 2));
			await new Promise((resolve) => setImmediate(resolve));
		}
	};
	const holdChecks = () => {
		const gate = Promise.withResolvers<void>();
		hold = gate.promise;
		return () => {
			hold = undefined;
			gate.resolve();
		};
	};
	return { books, rows, instance, pass, holdChecks, history, clock, said };
}

test("the books check runs at the start and every 15 min, and its result is stored", async () => {
	const { books, rows, instance, pass } = world();
	const one = instance();
	expect(one.last()).toBeUndefined();
	await pass(MINUTE_MS);
	expect(one.last()?.ok).toBe(true);
	books.ok = false;
	await pass(60 * MINUTE_MS);
	expect(one.last()?.ok).toBe(false);
	expect(rows.map(({ by, ok }) => [by, ok])).toEqual([
		["start", true],
		["timer", false],
		["timer", false],
		["timer", false],
		["timer", false],
	]);
	expect(books.checks).toBe(rows.length);
	one.stop();
	await pass(60 * MINUTE_MS);
	expect(books.checks).toBe(5);
});

test("the books check runs on one of many instances, and all instances use its result", async () => {
	const { books, rows, instance, pass } = world();
	const first = instance();
	const others = [instance(0.4), instance(0.6), instance(0.9)];
	await pass(1);
	await pass(999);
	// All instances started at the same time, so one check was stored and all use it.
	expect(rows).toHaveLength(1);
	expect(others.map((one) => one.last()?.ok)).toEqual([true, true, true]);
	books.ok = false;
	await pass(19 * MINUTE_MS);
	expect([first, ...others].map((one) => one.last()?.ok)).toEqual([false, false, false, false]);
	await pass(41 * MINUTE_MS);
	expect(books.checks).toBe(5);
	// An instance that starts later must run its own check.
	const before = books.checks;
	await pass(5 * MINUTE_MS);
	const late = instance();
	await pass(MINUTE_MS / 4);
	expect(books.checks).toBe(before + 1);
	for (const one of [first, late, ...others]) one.stop();
});

test("the books check is shared by all callers that arrived before it began", async () => {
	const { books, rows, instance, pass, holdChecks } = world();
	const one = instance();
	await pass(1);
	const release = holdChecks();
	const underWay = one.run("usr_1");
	books.ok = false;
	const after = [one.run("usr_2"), one.run("usr_3"), one.run("usr_4")];
	release();
	expect((await underWay).ok).toBe(true);
	const seen = await Promise.all(after);
	expect(new Set(seen.map(({ id, ok, by }) => `${id} ${ok} ${by}`))).toEqual(new Set(["rec_2 false usr_2"]));
	expect(rows).toHaveLength(3);
	expect(one.last()?.ok).toBe(false);
	one.stop();
});

test("the books check reports a result that cannot be stored, and runs again", async () => {
	const { books, instance, pass, history } = world();
	const add = history.add;
	history.add = () => Promise.reject(new Error("the database is away"));
	books.ok = false;
	const one = instance();
	await pass(1);
	expect(one.last()?.ok).toBe(false);
	history.add = add;
	books.ok = true;
	await pass(2 * MINUTE_MS);
	expect(one.last()?.ok).toBe(true);
	one.stop();
});

test("the books check reports no result of a run that a stop interrupts", async () => {
	for (const isStopped of [false, true]) {
		const { instance, pass, holdChecks, history, said } = world();
		const goOn = holdChecks();
		const one = instance();
		await pass(MINUTE_MS);
		if (isStopped) one.stop();
		history.add = async () => {
			throw new Error("the database client has ended");
		};
		goOn();
		await pass(1_000);
		expect(said).toEqual(isStopped ? [] : ["the books could not be checked"]);
		one.stop();
	}
});

test("the books check uses the newest stored result that is recent enough", async () => {
	const db = await withDatabase();
	const history = createBooksHistory(db.statements);
	expect(await history.newest(MINUTE_MS)).toBeUndefined();
	await history.add(await reconcile(db.statements), "start");
	const second = await history.add({ ok: false, checks: [{ name: "x", ok: false, detail: "y" }] }, "usr_1");
	expect(await history.newest(MINUTE_MS)).toEqual(second);
	await db.sql`update reconciliation_run set at = at - interval '1 hour'`;
	await waitFor(async () => (await history.newest(MINUTE_MS)) === undefined, "the runs to be old");
	expect(await history.newest(2 * 60 * MINUTE_MS)).toMatchObject({ id: second.id, by: "usr_1", ok: false });
});

test("the books check ignores a result dated in the future", async () => {
	const db = await withDatabase();
	const history = createBooksHistory(db.statements);
	await history.add({ ok: true, checks: [] }, "timer");
	await db.sql`update reconciliation_run set at = at + interval '1 day', id = 'rec_z'`;
	expect(await history.newest(MINUTE_MS)).toBeUndefined();
	const since = await history.add({ ok: false, checks: [] }, "timer");
	expect(await history.newest(MINUTE_MS)).toEqual(since);
});

test("the books check starts one run for callers that arrive as it begins", async () => {
	const { books, rows, instance, holdChecks, clock } = world();
	const one = instance();
	clock.advance(MINUTE_MS);
	await waitFor(() => rows.length === 1, "the check of the start");
	const goOn = holdChecks();
	// The first caller requests a third run as soon as its own ends, while the second caller still waits.
	const again = one.run("first").then(() => one.run("third"));
	const following = one.run("second");
	const before = books.checks;
	goOn();
	const both = await Promise.all([again, following]);
	expect(books.checks).toBe(before + 1);
	expect(both.map(({ by }) => by)).toEqual(["second", "second"]);
	one.stop();
});
