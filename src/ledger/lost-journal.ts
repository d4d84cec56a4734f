import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { FenceStore } from "../cluster/fence.ts";
import { onlyRow } from "../db/only-row.ts";
import type { Statements } from "../db/statements.ts";
import type { JournalNote } from "./persisted-liveness.ts";
import { createPersistedLiveness } from "./persisted-liveness.ts";

const LOOK_MS = 200;
const CLOSE_BATCH = 500;

interface EpochRow {
	epoch: number;
	beat: string;
	state: "joining" | "live" | "silent" | "dead" | "closing";
	ttl_ms: number;
	/** Where the database is, and when the epoch began there: elsewhere a beat may have been another one. */
	place: string;
}

/** Of an instance that is said to be gone. Not `renews`: it has joined again, and may be gone as soon. */
export class InstanceRuns extends Fault {
	readonly epoch: number;
	readonly renews: boolean;

	constructor(instanceId: string, epoch: number, renews: boolean) {
		super("conflict", `Instance ${instanceId} is running: ${renews ? "it renews its lease" : "it has joined again"}.`);
		this.epoch = epoch;
		this.renews = renews;
	}
}

interface SilenceDeps {
	statements: Statements;
	fence: Pick<FenceStore, "fenceOff">;
	clock: Clock;
}

/**
 * An operator attests that the journals of this identity are lost: its epochs are closed at what Postgres knows. Fault
 * conflict if it runs, not_found if there is none.
 */
export async function recoverLost(
	deps: SilenceDeps,
	instanceId: string,
	options: { graceMs: number },
): Promise<{ epochs: number; leases: number }> {
	const rows = await untilSilent(deps, instanceId, options);
	if (rows.length === 0) throw new Fault("not_found", `No unfinished epoch of instance ${instanceId}.`);
	return closeAll(deps, instanceId, rows);
}

/**
 * Waits until no epoch of this identity may still be admitting, by our own clock, as a fence does it, and fences them off;
 * gives those that have not ended. If one renews its lease or joins meanwhile, it is running: `InstanceRuns`. The caller's own do
 * not count. `settled`: nor may one still settle what it admitted before it was fenced off or stopped. `note`: what processes
 * before this one had waited counts.
 */
export async function untilSilent(
	{ statements, fence, clock }: SilenceDeps,
	instanceId: string,
	options: {
		graceMs: number;
		settled?: boolean;
		isOwn?: (epoch: number) => boolean;
		isStopping?: () => boolean;
		note?: JournalNote;
	},
): Promise<readonly EpochRow[]> {
	const silences = createPersistedLiveness(clock, options.note);
	const nameOf = ({ epoch, place }: EpochRow, state: EpochRow["state"]) => `${epoch} ${state} ${place}`;
	const first = new Map<string, string>();
	let known: ReadonlySet<number> | undefined;
	const newcomers = new Set<number>();
	/** With which beat each was dead that was silent for long enough. */
	const over = new Map<number, number>();
	const mayRun = ({ epoch, beat, state }: EpochRow) =>
		state === "live" ||
		state === "joining" ||
		state === "silent" ||
		(state === "dead" && options.settled === true && over.get(epoch) !== Number(beat));
	for (;;) {
		if (options.isStopping?.()) throw new Error("stopping");
		const all = await statements<EpochRow>`
			select epoch, beat, state, ttl_ms, concat(server_mark(), ' ', control_at(started_at)) as place from instance_now where id = ${instanceId} and state <> 'left' order by epoch`;
		const rows = all.filter(({ epoch }) => !options.isOwn?.(epoch));
		known ??= new Set(rows.map(({ epoch }) => epoch));
		// One that joins again and again, without room for its journal or crashing, would be waited for without end.
		for (const { epoch } of rows.filter((row) => !known?.has(row.epoch))) {
			// Of an epoch of its own the caller knows once the answer is there.
			if (newcomers.has(epoch)) throw new InstanceRuns(instanceId, epoch, false);
			newcomers.add(epoch);
		}
		const unsure = rows.filter(mayRun);
		if (unsure.length === 0) return rows;
		// Also those that have been waited for: the next process would wait anew.
		const named = new Set(rows.map((row) => nameOf(row, row.state)));
		for (const row of unsure) {
			const { epoch, beat, state, ttl_ms } = row;
			const [number, was] = [Number(beat), first.get(`${epoch} ${state}`)];
			if (state !== "silent" && was !== undefined && was !== beat) throw new InstanceRuns(instanceId, epoch, true);
			first.set(`${epoch} ${state}`, beat);
			// For one that is called silent another instance has waited, and its word is a beat of its own.
			const waitMs = ttl_ms + options.graceMs;
			if (state !== "silent" && silences.ofMs(nameOf(row, state), number) <= waitMs) continue;
			over.set(epoch, state === "dead" ? number : number + 1);
			if (state === "dead") continue;
			await fence.fenceOff(instanceId, epoch, number);
			named.add(nameOf(row, "dead"));
			silences.endedWith(nameOf(row, "dead"), number + 1, waitMs + 1);
		}
		silences.keep(named);
		await sleep(clock, LOOK_MS);
	}
}

async function closeAll(
	{ statements, clock }: SilenceDeps,
	instanceId: string,
	rows: readonly EpochRow[],
): Promise<{ epochs: number; leases: number }> {
	let leases = 0;
	for (const { epoch } of rows) {
		for (let done = false; !done; ) {
			const rows = await statements<{ closed: number; done: boolean }>`
				select closed, done from lease_close(${instanceId}, ${epoch}, true, ${CLOSE_BATCH})`;
			const step = onlyRow(rows);
			leases += step.closed;
			done = step.done;
			if (!done && step.closed === 0) await sleep(clock, LOOK_MS);
		}
	}
	return { epochs: rows.length, leases };
}
