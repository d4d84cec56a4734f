import { beforeEach, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import { type FenceOptions, type FenceResult, type FenceStore, waitUntilApplied } from "../../src/cluster/fence.ts";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { withDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { appendControl, entryAt, joinTestInstance, liveRow, standingOf } from "./fixture.ts";

const db = await withDatabase();
beforeEach(async () => {
	await db.sql`delete from instance_beat`;
});

const store = () => createPgFenceStore(db.liveness);
const heartbeats = () => createPgHeartbeatStore(db.liveness);
const fence = async (seq: number, deadlineMs: number, graceMs = 0) =>
	waitUntilApplied({ store: store(), clock: systemClock }, await entryAt(db.sql, seq), { deadlineMs, graceMs });
const laggingIds = async (seq: number) => (await store().lagging(await entryAt(db.sql, seq))).map(({ id }) => id);
const ENTRY = { seq: 1, atMicros: 1 };

/** A fence that stops waiting once `before` has run, so that the machine's speed does not matter. */
async function fenceByHand(
	{ store: asked = store(), entry = ENTRY, ...options }: FenceOptions & { store?: FenceStore; entry?: AppendedEntry },
	before: () => Promise<unknown> = async () => {},
): Promise<FenceResult> {
	let nowMs = 1_000_000;
	const clock: Clock = {
		wallMs: () => nowMs,
		monotonicMs: () => nowMs,
		after(delayMs, run) {
			void before().then(() => {
				nowMs += delayMs;
				run();
			});
			return () => {};
		},
	};
	return waitUntilApplied({ store: asked, clock }, entry, options);
}
const stateOf = async (id: string) => (await standingOf(db.sql, id))?.state;
const beatOf = async (id: string) => (await standingOf(db.sql, id))?.beat ?? 0;
const seqNow = async () => (await heartbeats().position()).seq;

const live = (id: string, ttlMs: number) => liveRow(heartbeats(), id, ttlMs);
/** A store without instances. */
const IDLE: FenceStore = {
	lagging: async () => [],
	fenceOff: async () => {},
	server: async () => ({ mark: "1/1", unquietMs: 0 }),
	quiet: async () => {},
};

/** Runs `during` while a transaction holds the locks that `statement` takes, then commits the transaction. */
async function whileUncommitted<T>(statement: string, during: () => Promise<T>): Promise<T> {
	const commit = await openTransaction(db.sql, (tx) => tx.unsafe(statement));
	return during().finally(commit);
}

const isBlocked = async () => (await lockWaits(db.sql)) > 0;

test("a revocation is effective once every live instance has applied it", async () => {
	const [a, b] = [await joinTestInstance(heartbeats(), "a"), await joinTestInstance(heartbeats(), "b")];
	await Promise.all([a.heartbeat.goLive(), b.heartbeat.goLive()]);
	const seq = await appendControl(db.statements, "key", "k", {});
	const { effective } = await fence(seq, 5_000);
	expect(effective).toBe(true);
	for (const { applied } of [a, b]) expect(applied.at(-1)?.seq).toBe(seq);
	a.heartbeat.stop();
	b.heartbeat.stop();
});

test("a revocation fences off a hanging instance when the instance's lease ends", async () => {
	await live("hung", 400);
	const entry = await entryAt(db.sql, await appendControl(db.statements, "key", "k", {}));
	const early = await fenceByHand({ entry, deadlineMs: 100, graceMs: 0 });
	expect(early.pending.map(({ id }) => id)).toEqual(["hung"]);
	expect(early.leftMs).toBeGreaterThan(0);
	const over = await fenceByHand({ entry, deadlineMs: 20_000, graceMs: 100 });
	expect(over.effective).toBe(true);
	expect(await stateOf("hung")).toBe("dead");
	expect(over.elapsedMs).toBeGreaterThanOrEqual(500);
	// The fence polls every 100 ms, and once more after it has fenced off an instance.
	expect(over.elapsedMs).toBeLessThanOrEqual(800);
});

test("a revocation waits for the whole lease even if the database's clock is ahead", async () => {
	await live("stepped", 400);
	const seq = await appendControl(db.statements, "key", "k", {});
	await db.sql`update instance_beat set lease_until = lease_until - interval '1 hour' where id = 'stepped'`;
	const startedMs = performance.now();
	expect((await fence(seq, 20_000, 100)).effective).toBe(true);
	expect(performance.now() - startedMs).toBeGreaterThan(450);
});

test("an instance that renews its lease without applying entries is never fenced off", async () => {
	await live("deaf", 200);
	const entry = await entryAt(db.sql, await appendControl(db.statements, "key", "k", {}));
	const renew = () => heartbeats().heartbeat("deaf", 1, 0, 200);
	const { effective, elapsedMs } = await fenceByHand({ entry, deadlineMs: 2_000, graceMs: 0 }, renew);
	expect([effective, elapsedMs > 5 * 200]).toEqual([false, true]);
	expect(await stateOf("deaf")).toBe("live");
});

test("an instance that was fenced off neither renews its lease nor goes live", async () => {
	await live("late", 10);
	await store().fenceOff("late", 1, await beatOf("late"));
	const seq = await seqNow();
	expect(await heartbeats().heartbeat("late", 1, seq, 60_000)).toBe(null);
	expect(await heartbeats().goLive("late", 1, seq, 60_000)).toBe(null);
});

test("a silent instance that renews its lease is live again", async () => {
	await live("back", 10);
	await store().silent("back", 1, await beatOf("back"));
	expect(await heartbeats().heartbeat("back", 1, 0, 60_000)).not.toBe(null);
	expect(await stateOf("back")).toBe("live");
});

test("an instance whose renewal is not committed yet is not fenced off", async () => {
	await live("slow", 10);
	const seq = await appendControl(db.statements, "key", "k", {});
	const seen = await beatOf("slow");
	let fenced: Promise<void> | undefined;
	await whileUncommitted(`select instance_renew('slow', 1, 0, 60000)`, async () => {
		fenced = store().fenceOff("slow", 1, seen);
		await waitFor(isBlocked, "the fence to wait for the renewal");
	});
	await fenced;
	expect(await stateOf("slow")).toBe("live");
	expect(await laggingIds(seq)).toEqual(["slow"]);
});

test("an instance goes live only once it has applied all control entries", async () => {
	const epoch = await heartbeats().join("new", 60_000);
	const before = await seqNow();
	let wentLive: Promise<number | null> | undefined;
	await whileUncommitted(`select control_append('key', 'k', '{}')`, async () => {
		wentLive = heartbeats().goLive("new", epoch, before, 60_000);
		await waitFor(isBlocked, "going live to wait for the revocation");
	});
	expect(await wentLive).toBe(before + 1);
	expect(await stateOf("new")).toBe("joining");
});

test("a revocation waits for an instance that is going live", async () => {
	const epoch = await heartbeats().join("joining", 60_000);
	const before = await seqNow();
	let seq: Promise<number> | undefined;
	await whileUncommitted(`select instance_go_live('joining', ${epoch}, ${before}, 60000)`, async () => {
		seq = appendControl(db.statements, "key", "k", {});
		await waitFor(isBlocked, "the revocation to wait for going live");
	});
	expect(await laggingIds((await seq) ?? 0)).toEqual(["joining"]);
});

test("concurrent revocations fence off the same silent instances without a deadlock", async () => {
	for (let n = 0; n < 10; n++) {
		await live(`gone-${n}`, 10);
		await store().silent(`gone-${n}`, 1, await beatOf(`gone-${n}`));
	}
	const seqs = await Promise.all(Array.from({ length: 12 }, () => appendControl(db.statements, "key", "k", {})));
	const startedMs = performance.now();
	const results = await Promise.all(seqs.map((seq) => fence(seq, 30_000, 60_000)));
	expect(results.every(({ effective }) => effective)).toBe(true);
	// A witness waits only once for the same lease.
	expect(performance.now() - startedMs).toBeLessThan(20_000);
});

test("revocations on a new database server wait once for one lease", async () => {
	await live("known", 2_000);
	const seq = await appendControl(db.statements, "key", "k", {});
	const entry = await entryAt(db.sql, seq);
	await heartbeats().heartbeat("known", 1, seq, 2_000);
	const wait = () => fenceByHand({ entry, deadlineMs: 20_000, graceMs: 100 });
	expect(await wait()).toMatchObject({ effective: true, elapsedMs: 0 });
	await db.sql`update server_seen set mark = 'the one before'`;
	const moved = await wait();
	expect(moved.effective).toBe(true);
	expect(moved.elapsedMs).toBeGreaterThanOrEqual(2_100);
	expect(await wait()).toMatchObject({ effective: true, elapsedMs: 0 });
});

test("no row lock delays a heartbeat, a fence or a revocation", async () => {
	await live("held", 60_000);
	const tables = ["instance_beat", "control_log", "server_seen"];
	for (const table of tables) {
		await whileUncommitted(`select * from ${table} for update`, async () => {
			const seq = await appendControl(db.statements, "key", "k", {});
			expect(await heartbeats().heartbeat("held", 1, seq, 60_000)).toMatchObject({ seq });
			expect(await laggingIds(seq)).toEqual([]);
			const epoch = await heartbeats().join(`beside ${table}`, 60_000);
			expect(await heartbeats().goLive(`beside ${table}`, epoch, seq, 60_000)).toBe(seq);
			await store().fenceOff(`beside ${table}`, epoch, await beatOf(`beside ${table}`));
			expect(await stateOf(`beside ${table}`)).toBe("dead");
		});
	}
});

test("an open transaction delays no revocation; its control entry appears at commit", async () => {
	const before = await seqNow();
	const held = Promise.withResolvers<void>();
	const hung = db.tx.transaction(async (tx) => {
		await tx.execute(sql`select control_append('account', 'slow', '{}')`);
		await held.promise;
	});
	await waitFor(
		async () =>
			(
				await db.sql`select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`
			).length > 0,
		"the transaction to hang",
	);
	expect(await appendControl(db.statements, "key", "k", {})).toBe(before + 1);
	held.resolve();
	await hung;
	const entries = await heartbeats().readAfter(before);
	expect(entries.map(({ subject }) => subject)).toEqual(["k", "slow"]);
	expect((await db.sql`select 1 from control_pending`).length).toBe(0);
});

test("control entries are numbered in the order of their commits", async () => {
	const reading = heartbeats();
	const from = await seqNow();
	const seen: number[] = [];
	let at = from;
	const reader = (async () => {
		while (at < from + 200) {
			for (const entry of await reading.readAfter(at)) {
				seen.push(entry.seq);
				at = entry.seq;
			}
		}
	})();
	await Promise.all(Array.from({ length: 200 }, () => appendControl(db.statements, "account", "c", {})));
	await reader;
	expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => from + n + 1));
});

test("a revocation repeats its failed query for instances up to ten times in a row", async () => {
	let failures = 3;
	const flaky: FenceStore = {
		...IDLE,
		async lagging() {
			if (failures-- > 0) throw new Error("deadlock detected");
			return [];
		},
	};
	const asking = () => fenceByHand({ store: flaky, deadlineMs: 1_000, graceMs: 0 });
	expect((await asking()).effective).toBe(true);
	failures = 1_000;
	await expect(asking()).rejects.toThrow("deadlock");
});

test("a revocation is reported as unknown if the database lacks its control entry", async () => {
	const seq = await appendControl(db.statements, "key", "k", {});
	const { atMicros } = await entryAt(db.sql, seq);
	// Entries that the new server gave to other changes: with another number, or the same number and another time.
	for (const lost of [
		{ seq: seq + 1, atMicros },
		{ seq, atMicros: atMicros - 1 },
		{ seq: 0, atMicros },
	]) {
		await expect(fenceByHand({ entry: lost, deadlineMs: 60_000, graceMs: 0 })).rejects.toThrow("no entry");
		const everywhere = await waitForAllInstances({ liveness: db.liveness, clock: systemClock }, lost, 60_000);
		expect(everywhere).toMatchObject({ effective: false, known: false, effectiveByMs: null });
	}
	expect((await fence(seq, 5_000)).effective).toBe(true);
});

test("a revocation fails if the database moves to another server while it waits", async () => {
	const clock = createManualClock();
	const lagging = { id: "i", epoch: 1, beat: 1, ttlMs: 30_000, leaseUntilMs: clock.wallMs() };
	let looks = 0;
	let mark = "1/1";
	const moving: FenceStore = {
		...IDLE,
		async lagging() {
			looks += 1;
			if (looks === 1) return [lagging];
			// The new server gave this number to another entry, which was applied.
			mark = "1/2";
			return [];
		},
		server: async () => ({ mark, unquietMs: 0 }),
	};
	const options = { deadlineMs: 60_000, graceMs: 0 };
	const waited = waitUntilApplied({ store: moving, clock }, ENTRY, options).catch((error: Error) => error.name);
	await waitFor(() => clock.pending() > 0, "the second look to be due");
	clock.advance(100);
	expect(await waited).toBe("AnotherServer");
});

test("a revocation waits again for an instance that renews its lease during the wait", async () => {
	const state = { beat: 1, dead: false, fences: 0 };
	const racing: FenceStore = {
		...IDLE,
		lagging: async () => (state.dead ? [] : [{ id: "i", epoch: 1, beat: state.beat, ttlMs: 1_000, leaseUntilMs: 0 }]),
		async fenceOff(_id, _epoch, beat) {
			state.fences += 1;
			if (state.fences === 1) state.beat += 1;
			if (beat === state.beat) state.dead = true;
		},
	};
	const waited = await fenceByHand({ store: racing, deadlineMs: Number.POSITIVE_INFINITY, graceMs: 500 });
	expect([waited.effective, state.dead, state.fences]).toEqual([true, true, 2]);
	expect(waited.elapsedMs).toBeGreaterThanOrEqual(2 * 1_500);
});

test("a revocation on a new server also waits for leases of instances that are joining", async () => {
	await heartbeats().join("joining", 7_777);
	expect((await db.sql`select ttl_ms from server_fresh()`)[0]?.ttl_ms).toBe(7_777);
});
