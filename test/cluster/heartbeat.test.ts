import { expect, test } from "bun:test";
import { appendControl } from "../../src/cluster/control-log.ts";
import type { HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgHeartbeatStore } from "../../src/cluster/pg-heartbeat-store.ts";
import { withDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";
import { joinTestInstance } from "./fixture.ts";

const db = await withDatabase();

/** The real store behind a switch. */
function cuttable() {
	const state = { away: false };
	const real = createPgHeartbeatStore(db.statements);
	const store = new Proxy(real, {
		get:
			(target, name: keyof HeartbeatStore) =>
			async (...args: never[]) => {
				if (state.away) throw new Error("the database is away");
				return (target[name] as (...values: never[]) => Promise<unknown>)(...args);
			},
	});
	return { store, state };
}

test("each start of an identity takes the next epoch", async () => {
	const store = createPgHeartbeatStore(db.statements);
	expect(await Promise.all([1, 2, 3, 4].map(() => store.join("again", 1_000))).then((epochs) => epochs.sort())).toEqual(
		[1, 2, 3, 4],
	);
});

test("entries are applied in order, each once, and acknowledged only when they are applied", async () => {
	let release = () => {};
	const { heartbeat, applied } = await joinTestInstance(createPgHeartbeatStore(db.statements), "order", {
		apply: (entry) => (entry.subject === "slow" ? new Promise<void>((resolve) => (release = resolve)) : undefined),
	});
	await heartbeat.goLive();
	const first = await appendControl(db.statements, "key", "quick", {});
	const second = await appendControl(db.statements, "recall", "slow", {});
	void heartbeat.sync();
	await waitFor(() => applied.length === 2, "both entries");
	const acknowledged = async () =>
		Number((await db.sql`select applied_seq from instance where id = 'order'`)[0]?.applied_seq);
	expect(heartbeat.appliedSeq()).toBe(first);
	expect(await acknowledged()).toBeLessThan(second);
	release();
	await waitFor(async () => (await acknowledged()) === second, "the acknowledgement");
	expect(applied.map(({ seq }) => seq)).toEqual([first, second]);
	heartbeat.stop();
});

test("through an outage the instance keeps trying: the gate closes when its lease is over and opens again by itself", async () => {
	const { store, state } = cuttable();
	const { heartbeat, gate } = await joinTestInstance(store, "outage", { ttlMs: 2_000, marginMs: 800, heartbeatMs: 50 });
	await heartbeat.goLive();
	expect(gate.isOpen()).toBe(true);
	state.away = true;
	const cutMs = performance.now();
	await Bun.sleep(200);
	expect(gate.isOpen()).toBe(true);
	await waitFor(() => !gate.isOpen(), "the gate to close");
	const closedAfterMs = performance.now() - cutMs;
	// Before the lease is over, however late the timers of a busy machine are.
	expect(closedAfterMs).toBeLessThan(2_000);
	state.away = false;
	await waitFor(() => gate.isOpen(), "the gate to open again");
	heartbeat.stop();
});

test("what was missed in an outage is applied before the gate opens again", async () => {
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

test("an instance that was fenced off closes its gate and says that a new epoch is needed", async () => {
	const { heartbeat, gate, fenced } = await joinTestInstance(createPgHeartbeatStore(db.statements), "fenced");
	await heartbeat.goLive();
	await db.sql`update instance set state = 'dead' where id = 'fenced'`;
	await fenced;
	expect(gate.isOpen()).toBe(false);
});

test("an instance that stops says so, so that no revocation waits for it", async () => {
	const { heartbeat, gate } = await joinTestInstance(createPgHeartbeatStore(db.statements), "leaving");
	await heartbeat.goLive();
	heartbeat.stop();
	expect(gate.isOpen()).toBe(false);
	await waitFor(
		async () => (await db.sql`select state from instance where id = 'leaving'`)[0]?.state === "dead",
		"its state",
	);
});
