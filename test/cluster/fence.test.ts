import { beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { appendControl } from "../../src/cluster/control-log.ts";
import { pendingInstances, waitApplied } from "../../src/cluster/fence.ts";
import { createPgHeartbeatStore } from "../../src/cluster/pg-heartbeat-store.ts";
import { withDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";
import { joinTestInstance } from "./fixture.ts";

const db = await withDatabase();
beforeEach(async () => {
	await db.sql`delete from instance`;
});

const pending = (seq: number, graceMs: number) => pendingInstances(db.statements)(seq, graceMs);
const fence = (seq: number, deadlineMs: number, graceMs = 0) =>
	waitApplied({ pending, clock: systemClock }, seq, { deadlineMs, graceMs });
const stateOf = async (id: string) => (await db.sql`select state from instance where id = ${id}`)[0]?.state as string;

async function liveRow(id: string, ttlMs: number): Promise<void> {
	const store = createPgHeartbeatStore(db.statements);
	const epoch = await store.join(id, ttlMs);
	await store.goLive(id, epoch, await store.seq(), ttlMs);
}

/** Runs `during` while a transaction holds what `statement` locked, then commits it. */
async function whileUncommitted<T>(statement: string, during: () => Promise<T>): Promise<T> {
	const held = Promise.withResolvers<void>();
	const commit = Promise.withResolvers<void>();
	const transaction = db.sql.begin(async (sql) => {
		await sql.unsafe(statement);
		held.resolve();
		await commit.promise;
	});
	await held.promise;
	try {
		return await during();
	} finally {
		commit.resolve();
		await transaction;
	}
}

/** True once a statement of this database waits for a lock. */
const isBlocked = async () =>
	(await db.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		.length > 0;

test("a revocation is effective as soon as every live instance has applied it", async () => {
	const a = await joinTestInstance(createPgHeartbeatStore(db.statements), "a");
	const b = await joinTestInstance(createPgHeartbeatStore(db.statements), "b");
	await Promise.all([a.heartbeat.goLive(), b.heartbeat.goLive()]);
	const seq = await appendControl(db.statements, "key", "k", {});
	const { effective } = await fence(seq, 5_000);
	expect(effective).toBe(true);
	for (const { applied } of [a, b]) expect(applied.at(-1)?.seq).toBe(seq);
	a.heartbeat.stop();
	b.heartbeat.stop();
});

test("an instance that hangs is waited for until its lease is over, then fenced off", async () => {
	await liveRow("hung", 400);
	const seq = await appendControl(db.statements, "key", "k", {});
	const startedMs = performance.now();
	expect((await fence(seq, 100)).pending.map(({ id }) => id)).toEqual(["hung"]);
	const { effective } = await fence(seq, 20_000, 100);
	const elapsedMs = performance.now() - startedMs;
	expect(effective).toBe(true);
	expect(await stateOf("hung")).toBe("dead");
	expect(elapsedMs).toBeGreaterThan(350);
	expect(elapsedMs).toBeLessThan(10_000);
});

test("one that renews without applying is never taken for gone", async () => {
	const store = createPgHeartbeatStore(db.statements);
	await liveRow("deaf", 200);
	const seq = await appendControl(db.statements, "key", "k", {});
	let renewing = true;
	const renewals = (async () => {
		while (renewing) {
			await store.heartbeat("deaf", 1, 0, 200);
			await Bun.sleep(20);
		}
	})();
	expect((await fence(seq, 600)).effective).toBe(false);
	expect(await stateOf("deaf")).toBe("live");
	renewing = false;
	await renewals;
});

test("race: an instance that was judged dead cannot renew its lease any more", async () => {
	const store = createPgHeartbeatStore(db.statements);
	await liveRow("late", -10);
	const seq = await appendControl(db.statements, "key", "k", {});
	expect(await pending(seq, 0)).toEqual([]);
	expect(await store.heartbeat("late", 1, seq, 60_000)).toBe(null);
	expect(await store.goLive("late", 1, seq, 60_000)).toBe(null);
});

test("race: a renewal that is not committed yet is waited for, and keeps the instance in the count", async () => {
	await liveRow("slow", -10);
	const seq = await appendControl(db.statements, "key", "k", {});
	let answer: Promise<readonly { id: string }[]> | undefined;
	await whileUncommitted(`select instance_heartbeat('slow', 1, 0, 60000)`, async () => {
		answer = pending(seq, 0);
		await waitFor(isBlocked, "the fence to wait for the renewal");
	});
	expect((await answer)?.map(({ id }) => id)).toEqual(["slow"]);
	expect(await stateOf("slow")).toBe("live");
});

test("race: an instance cannot go live beside a revocation that it has not seen", async () => {
	const store = createPgHeartbeatStore(db.statements);
	const epoch = await store.join("new", 60_000);
	const before = await store.seq();
	let live: Promise<number | null> | undefined;
	await whileUncommitted(`select control_append('key', 'k', '{}')`, async () => {
		live = store.goLive("new", epoch, before, 60_000);
		await waitFor(isBlocked, "going live to wait for the revocation");
	});
	expect(await live).toBe(before + 1);
	expect(await stateOf("new")).toBe("joining");
});

test("race: a revocation waits for an instance that is just going live, and then counts it", async () => {
	const store = createPgHeartbeatStore(db.statements);
	const epoch = await store.join("joining", 60_000);
	const before = await store.seq();
	let seq: Promise<number> | undefined;
	await whileUncommitted(`select instance_go_live('joining', ${epoch}, ${before}, 60000)`, async () => {
		seq = appendControl(db.statements, "key", "k", {});
		await waitFor(isBlocked, "the revocation to wait for going live");
	});
	expect((await pending((await seq) ?? 0, 0)).map(({ id }) => id)).toEqual(["joining"]);
});

test("many revocations at once fence off the same dead instances without a deadlock", async () => {
	for (let n = 0; n < 10; n++) await liveRow(`gone-${n}`, -10);
	const seqs = await Promise.all(Array.from({ length: 12 }, () => appendControl(db.statements, "key", "k", {})));
	const results = await Promise.all(seqs.map((seq) => fence(seq, 5_000)));
	expect(results.every(({ effective }) => effective)).toBe(true);
});

test("sequence numbers are in the order of commits, so that a reader skips none", async () => {
	const store = createPgHeartbeatStore(db.statements);
	const from = await store.seq();
	const seen: number[] = [];
	let at = from;
	const reader = (async () => {
		while (at < from + 200) {
			for (const entry of await store.readAfter(at)) {
				seen.push(entry.seq);
				at = entry.seq;
			}
		}
	})();
	await Promise.all(Array.from({ length: 200 }, () => appendControl(db.statements, "catalog", "c", {})));
	await reader;
	expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => from + n + 1));
});

test("a question that fails is asked again; for good only after many failures in a row", async () => {
	let failures = 3;
	const flaky = async () => {
		if (failures-- > 0) throw new Error("deadlock detected");
		return [];
	};
	const deps = { pending: flaky, clock: systemClock };
	expect((await waitApplied(deps, 1, { deadlineMs: 1_000, graceMs: 0 })).effective).toBe(true);
	failures = 1_000;
	await expect(waitApplied(deps, 1, { deadlineMs: 60_000, graceMs: 0 })).rejects.toThrow("deadlock");
});
