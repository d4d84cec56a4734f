import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import {
	createPgHeartbeatStore,
	type Heartbeat,
	type HeartbeatStore,
	type LogPosition,
} from "../../src/cluster/heartbeat.ts";
import { removeControl } from "../../src/ledger/removal.ts";
import { withDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { appendControl, joinTestInstance, standingOf } from "./fixture.ts";

const db = await withDatabase();
const heartbeats = () => createPgHeartbeatStore(db.liveness);
const standing = async (id: string) => await standingOf(db.sql, id);

function cuttable() {
	const state = { away: false, server: undefined as string | undefined };
	const real = heartbeats();
	const store = new Proxy(real, {
		get:
			(target, name: keyof HeartbeatStore) =>
			async (...args: never[]) => {
				if (state.away) throw new Error("the database is away");
				const result = await (target[name] as (...values: never[]) => Promise<unknown>)(...args);
				const saysServer = (name === "heartbeat" || name === "position") && result !== null;
				if (!saysServer || state.server === undefined) return result;
				return { ...(result as LogPosition), server: state.server };
			},
	});
	return { store, state };
}

test("an instance applies control entries in order, once, and then acknowledges them", async () => {
	const { heartbeat, applied } = await joinTestInstance(heartbeats(), "order", { heartbeatMs: 10_000 });
	await heartbeat.goLive();
	const acknowledged = async () => (await standing("order"))?.applied ?? 0;
	const first = await appendControl(db.statements, "key", "one", {});
	expect(await acknowledged()).toBeLessThan(first);
	const second = await appendControl(db.statements, "key", "two", {});
	void heartbeat.sync();
	await waitFor(async () => (await acknowledged()) === second, "the acknowledgement");
	expect(applied.map(({ seq }) => seq)).toEqual([first, second]);
	expect(heartbeat.appliedSeq()).toBe(second);
	heartbeat.stop();
});

test("an instance sends no heartbeat before it is live", async () => {
	const store = heartbeats();
	let sent = 0;
	const heartbeatOnce: HeartbeatStore["heartbeat"] = (...args) => {
		sent++;
		return store.heartbeat(...args);
	};
	const options = { heartbeatMs: 10_000 };
	const { heartbeat } = await joinTestInstance({ ...store, heartbeat: heartbeatOnce }, "early", options);
	await heartbeat.sync();
	// An epoch must not send a heartbeat before it is live: the answer would say that it is fenced off, and end it.
	expect(sent).toBe(0);
	await heartbeat.goLive();
	await heartbeat.sync();
	expect(sent).toBe(1);
	heartbeat.stop();
});

test("an instance replaces its row with a higher beat at each heartbeat", async () => {
	const { heartbeat } = await joinTestInstance(heartbeats(), "beats", { heartbeatMs: 10_000 });
	await heartbeat.goLive();
	const beat = async () => (await standing("beats"))?.beat ?? 0;
	const before = await beat();
	await heartbeat.sync();
	await heartbeat.sync();
	expect(await beat()).toBe(before + 2);
	expect((await db.sql`select 1 from instance_beat where id = 'beats'`).length).toBe(1);
	heartbeat.stop();
});

test("an instance stops admitting when the database moved to another server", async () => {
	const { store, state } = cuttable();
	let left = 0;
	const leave = (id: string, epoch: number) => {
		left++;
		return store.leave(id, epoch);
	};
	const { heartbeat, gate, ended } = await joinTestInstance({ ...store, leave }, "moved", { heartbeatMs: 10_000 });
	await heartbeat.goLive();
	expect(gate.isOpen()).toBe(true);
	state.server = "another/00000002";
	await heartbeat.sync();
	expect(gate.isOpen()).toBe(false);
	expect(await ended).toBe("another server");
	// The instance counts as live until its free credit is returned.
	expect(left).toBe(0);
	heartbeat.stop();
	await waitFor(async () => (await standing("moved"))?.state === "dead", "the others to be told");
});

test("an instance unknown to a new database server reports the move, not a fence", async () => {
	const { store, state } = cuttable();
	const { heartbeat, gate, ended } = await joinTestInstance(store, "unknown", { heartbeatMs: 10_000 });
	await heartbeat.goLive();
	state.server = "another/00000002";
	await db.sql`delete from instance_beat where id = 'unknown'`;
	await heartbeat.sync();
	expect(gate.isOpen()).toBe(false);
	expect(await ended).toBe("another server");
});

test("an instance ends its epoch if the log lacks entries that it has applied", async () => {
	const store = heartbeats();
	const epoch = await store.join("ahead", 60_000);
	const { seq } = await store.position();
	await store.goLive("ahead", epoch, seq, 60_000);
	for (const applied of [seq + 1, seq]) expect(await store.heartbeat("ahead", epoch, applied, 60_000)).toBe(null);
});

test("an instance closes its gate in a database outage and opens it afterwards", async () => {
	const { store, state } = cuttable();
	const clock = createManualClock();
	const lease = { ttlMs: 2_000, marginMs: 800, heartbeatMs: 50, clock };
	const { heartbeat, gate } = await joinTestInstance(store, "outage", lease);
	await heartbeat.goLive();
	expect(gate.isOpen()).toBe(true);
	state.away = true;
	const cutMs = clock.monotonicMs();
	const becomes = (isOpen: boolean) => {
		if (gate.isOpen() === isOpen) return true;
		clock.advance(50);
		return false;
	};
	await waitFor(() => becomes(false), "the gate to close");
	expect(clock.monotonicMs() - cutMs).toBe(1_200);
	state.away = false;
	await waitFor(() => becomes(true), "the gate to open again");
	heartbeat.stop();
});

test("an instance soon repeats a failed heartbeat, until its epoch ends", async () => {
	const { store, state } = cuttable();
	const clock = createManualClock();
	const { heartbeat, gate } = await joinTestInstance(store, "repeats", { heartbeatMs: 1_000, ttlMs: 5_000, clock });
	await heartbeat.goLive();
	const beat = async () => (await standing("repeats"))?.beat ?? 0;
	const before = await beat();
	state.away = true;
	await heartbeat.sync();
	state.away = false;
	// Two timers: the next heartbeat and one repetition, however many heartbeats failed.
	expect(clock.pending()).toBe(2);
	clock.advance(200);
	await heartbeat.sync();
	expect(await beat()).toBeGreaterThanOrEqual(before + 2);
	expect(clock.pending()).toBe(1);
	clock.advance(4_600);
	expect(gate.isOpen()).toBe(true);
	state.away = true;
	await heartbeat.sync();
	await heartbeat.sync();
	expect(clock.pending()).toBe(2);
	state.away = false;
	heartbeat.stop();
	expect(clock.pending()).toBe(0);
});

test("an instance applies the entries of an outage before its gate opens again", async () => {
	const { store, state } = cuttable();
	const seen: boolean[] = [];
	const joined = await joinTestInstance(store, "missed", {
		ttlMs: 300,
		marginMs: 50,
		heartbeatMs: 30,
		apply: () => void seen.push(joined.gate.isOpen()),
	});
	await joined.heartbeat.goLive();
	state.away = true;
	await waitFor(() => !joined.gate.isOpen(), "the gate to close");
	await appendControl(db.statements, "key", "revoked meanwhile", {});
	state.away = false;
	await waitFor(() => joined.gate.isOpen(), "the gate to open again");
	expect(seen).toEqual([false]);
	joined.heartbeat.stop();
});

test("an instance closes its gate and ends when it is fenced off", async () => {
	const { heartbeat, gate, ended } = await joinTestInstance(heartbeats(), "fenced");
	await heartbeat.goLive();
	await db.sql`select instance_stand('fenced', 1, null, array['live'], 'dead', null, null)`;
	expect(await ended).toBe("fenced off");
	expect(gate.isOpen()).toBe(false);
});

test("an ended instance keeps one row that shows that its process still runs", async () => {
	const clock = createManualClock();
	const store = heartbeats();
	const rows = async (id: string) => (await db.sql`select 1 from instance_beat where id = ${id}`).length;
	for (const [id, ends] of [
		["left", async ({ leave }: Heartbeat) => leave()],
		["fenced off", async () => db.sql`select instance_stand('fenced off', 1, null, array['live'], 'dead', null, null)`],
	] as const) {
		const { heartbeat } = await joinTestInstance(store, id, { heartbeatMs: 1_000, clock });
		await heartbeat.goLive();
		await ends(heartbeat);
		const later = async () => {
			clock.advance(1_000);
			return await standing(id);
		};
		await waitFor(async () => (await later())?.state === "dead", "the end of the epoch");
		const before = (await standing(id))?.beat ?? 0;
		await waitFor(async () => ((await later())?.beat ?? 0) > before + 1, "it to be told again");
		await waitFor(async () => (await rows(id)) === 1, "its former rows to go");
		heartbeat.stop();
		expect(clock.pending()).toBe(0);
	}
});

test("an instance reports its stop, so that revocations do not wait for its lease", async () => {
	const { heartbeat, gate } = await joinTestInstance(heartbeats(), "leaving");
	await heartbeat.goLive();
	heartbeat.stop();
	expect(gate.isOpen()).toBe(false);
	await waitFor(async () => (await standing("leaving"))?.state === "dead", "its state");
});

test("an instance closes its gate some time before its lease ends", async () => {
	const clock = createManualClock();
	const real = heartbeats();
	/** Delays a reply by 700 ms of the instance's clock. */
	const late = async <T>(reply: Promise<T>): Promise<T> => {
		const result = await reply;
		clock.advance(700);
		return result;
	};
	const store: HeartbeatStore = {
		...real,
		goLive: (...args) => late(real.goLive(...args)),
		heartbeat: (...args) => late(real.heartbeat(...args)),
	};
	const options = { clock, ttlMs: 5_000, marginMs: 1_000, heartbeatMs: 60_000 };
	const { heartbeat, gate } = await joinTestInstance(store, "margin", options);
	for (const send of [() => heartbeat.goLive(), () => heartbeat.sync()]) {
		await send();
		clock.advance(5_000 - 1_000 - 700 - 1);
		expect(gate.isOpen()).toBe(true);
		clock.advance(1);
		expect(gate.isOpen()).toBe(false);
	}
	heartbeat.stop();
});

test("an instance applies entries appended during a heartbeat before its gate opens", async () => {
	const real = heartbeats();
	const made: number[] = [];
	/** Appends an entry just before the heartbeat's statement arrives. */
	const beaten = async <T>(send: () => Promise<T>): Promise<T> => {
		if (made.length < 2) made.push(await appendControl(db.statements, "key", "late", {}));
		return send();
	};
	const store: HeartbeatStore = {
		...real,
		goLive: (...args) => beaten(() => real.goLive(...args)),
		heartbeat: (...args) => beaten(() => real.heartbeat(...args)),
	};
	const { heartbeat, gate, applied } = await joinTestInstance(store, "beaten", { heartbeatMs: 60_000 });
	await heartbeat.goLive();
	expect(applied.map(({ seq }) => seq)).toEqual(made);
	expect((await db.sql`select state from instance_now where id = 'beaten'`)[0]?.state).toBe("live");
	made.length = 1;
	await heartbeat.sync();
	expect(applied.at(-1)?.seq).toBe(made[1]);
	expect(gate.isOpen()).toBe(true);
	heartbeat.stop();
});

test("an instance acknowledges a control entry only after applying it in memory", async () => {
	const real = heartbeats();
	const early: number[] = [];
	const store: HeartbeatStore = {
		...real,
		heartbeat(id, epoch, seq, ttlMs) {
			if (seq > from && seq !== applied.at(-1)?.seq) early.push(seq);
			return real.heartbeat(id, epoch, seq, ttlMs);
		},
	};
	const { heartbeat, applied } = await joinTestInstance(store, "honest", { heartbeatMs: 60_000 });
	await heartbeat.goLive();
	const from = heartbeat.appliedSeq();
	for (const subject of ["one", "two"]) await appendControl(db.statements, "key", subject, {});
	await heartbeat.sync();
	expect(applied.map(({ subject }) => subject)).toEqual(["one", "two"]);
	expect(early).toEqual([]);
	heartbeat.stop();
});

test("two instances that start at the same time get different epochs", async () => {
	const store = heartbeats();
	const commit = await openTransaction(db.sql, (tx) => tx`select instance_join('twin', 1000)`);
	const second = store.join("twin", 1_000);
	await waitFor(async () => (await lockWaits(db.sql)) > 0, "the second one to wait");
	await commit();
	expect(await second).toBe(2);
});

test("an instance ends its epoch if entries were deleted that it has not applied", async () => {
	const store = heartbeats();
	const append = (subject: string) => appendControl(db.statements, "key", subject, {});
	await append("before");
	let paused = false;
	const entered = Promise.withResolvers<void>();
	const resumed = Promise.withResolvers<void>();
	const member = await joinTestInstance(
		{
			...store,
			readAfter: async (seq) => {
				if (paused) {
					entered.resolve();
					await resumed.promise;
				}
				return store.readAfter(seq);
			},
		},
		"paused",
	);
	await member.heartbeat.goLive();
	const busy = await joinTestInstance(store, "busy");
	await busy.heartbeat.goLive();
	paused = true;
	await entered.promise;
	await append("revoked");
	await append("later");
	await waitFor(() => busy.applied.length === 2, "the other instance to apply both");
	await db.sql`update control_log set at = now() - interval '40 days'`;
	// Entries are kept as long as the lease of an instance runs that has not applied them.
	await removeControl({ statements: db.statements, clock: systemClock }, 30);
	expect(await db.sql`select 1 from control_log where subject in ('revoked', 'later')`).toHaveLength(2);
	await db.sql`update instance_beat set lease_until = now() - interval '1 minute' where id = 'paused'`;
	await removeControl({ statements: db.statements, clock: systemClock }, 30);
	expect((await db.sql`select subject from control_log`).map(({ subject }) => subject)).toEqual(["later"]);
	resumed.resolve();
	expect(await member.ended).toBe("entries removed");
	expect(member.gate.isOpen()).toBe(false);
	expect(member.applied).toEqual([]);
	for (const { heartbeat } of [member, busy]) heartbeat.stop();
});
