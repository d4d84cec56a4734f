import type postgres from "postgres";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { type AppendedEntry, type AppendedRow, type ControlEntry, toEntry } from "../../src/cluster/control-log.ts";
import { createGate } from "../../src/cluster/gate.ts";
import { type EndOfEpoch, type HeartbeatStore, startHeartbeat } from "../../src/cluster/heartbeat.ts";
import { onlyRow } from "../../src/db/outage.ts";
import type { Statements } from "../../src/db/statements.ts";

export async function appendControl(
	statements: Statements,
	kind: ControlEntry["kind"],
	subject: string,
	payload: Record<string, unknown>,
): Promise<number> {
	const rows = await statements<{ seq: string }>`
		select control_append(${kind}, ${subject}, ${JSON.stringify(payload)}::text::jsonb) as seq`;
	return Number(onlyRow(rows).seq);
}

/** The entry with this number as its change returned it; time 0 if the log lacks it. */
export async function entryAt(sql: postgres.Sql, seq: number): Promise<AppendedEntry> {
	const [row] = await sql<AppendedRow[]>`select seq, control_at(at) as at_micros from control_log where seq = ${seq}`;
	return row === undefined ? { seq, atMicros: 0 } : toEntry(row);
}

/** The current row of an instance. */
export async function standingOf(sql: postgres.Sql, id: string) {
	const [row] = await sql<{ state: string; beat: number; applied: number }[]>`
		select state, beat::int as beat, applied_seq::int as applied from instance_now where id = ${id}`;
	return row;
}

/** Makes an instance live whose heartbeats the test sends. */
export async function liveRow(store: HeartbeatStore, id: string, ttlMs: number): Promise<void> {
	const epoch = await store.join(id, ttlMs);
	await store.goLive(id, epoch, (await store.position()).seq, ttlMs);
}

export async function joinTestInstance(
	store: HeartbeatStore,
	id: string,
	options: {
		ttlMs?: number;
		marginMs?: number;
		heartbeatMs?: number;
		clock?: Clock;
		apply?: (entry: ControlEntry) => void;
	} = {},
) {
	const clock = options.clock ?? systemClock;
	const gate = createGate({ clock });
	const applied: ControlEntry[] = [];
	const ended = Promise.withResolvers<EndOfEpoch>();
	const heartbeat = await startHeartbeat(
		{
			store,
			clock,
			log: silentLog,
			gate,
			apply: (entry) => {
				applied.push(entry);
				options.apply?.(entry);
			},
			onEnded: (why) => ended.resolve(why),
		},
		{ id, ttlMs: options.ttlMs ?? 60_000, marginMs: options.marginMs ?? 100, heartbeatMs: options.heartbeatMs ?? 20 },
	);
	return { heartbeat, gate, applied, ended: ended.promise };
}
