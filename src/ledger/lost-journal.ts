import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { createSilenceTimes, type FenceStore } from "../cluster/fence.ts";
import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { JournalHome } from "./journal-home.ts";

const LOOK_MS = 200;
const CLOSE_BATCH = 500;

interface EpochRow {
	epoch: number;
	beat: string;
	state: "joining" | "live" | "silent" | "dead" | "closing";
	ttl_ms: number;
	/** Database server and start of the epoch: on another server, a beat with the same number may be a different one. */
	place: string;
}

/** An instance that should have ended is running. `renews` false: it has joined again, and may end soon. */
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
 * An operator attests that an instance's journals are lost: closes its epochs with what Postgres has. Fault `conflict`
 * if it runs, `not_found` if there is none.
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
 * Waits, by this process's clock, until no epoch of this instance may admit, and fences them. Returns the epochs that
 * have not ended. Throws `InstanceRuns` if one renews its lease or joins. The caller's epochs are ignored.
 * `settled`: also waits until none may settle requests admitted before its end.
 */
export async function untilSilent(
	{ statements, fence, clock }: SilenceDeps,
	instanceId: string,
	options: { graceMs: number; settled?: boolean; isOwn?: (epoch: number) => boolean; isStopping?: () => boolean },
): Promise<readonly EpochRow[]> {
	const silences = createSilenceTimes(clock);
	const first = new Map<string, string>();
	let known: ReadonlySet<number> | undefined;
	const newcomers = new Set<number>();
	/** Beat at which each epoch was found silent for long enough. */
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
		// An instance that joins repeatedly, because its journal lacks room or it crashes, would be awaited for ever.
		for (const { epoch } of rows.filter((row) => !known?.has(row.epoch))) {
			// The caller knows its own epoch only after this query has returned.
			if (newcomers.has(epoch)) throw new InstanceRuns(instanceId, epoch, false);
			newcomers.add(epoch);
		}
		const unsure = rows.filter(mayRun);
		if (unsure.length === 0) return rows;
		for (const { epoch, beat, state, ttl_ms, place } of unsure) {
			const [number, was] = [Number(beat), first.get(`${epoch} ${state}`)];
			if (state !== "silent" && was !== undefined && was !== beat) throw new InstanceRuns(instanceId, epoch, true);
			first.set(`${epoch} ${state}`, beat);
			// An epoch in state `silent` was already awaited by another instance, and fencing it changes its beat.
			const silentMs = silences.ofMs(`${epoch} ${state} ${place}`, number);
			if (state !== "silent" && silentMs <= ttl_ms + options.graceMs) continue;
			over.set(epoch, state === "dead" ? number : number + 1);
			if (state !== "dead") await fence.fenceOff(instanceId, epoch, number);
		}
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

/** State of the instance that wrote a journal found here. `unsure`: it joins repeatedly, or ended during the check. */
export type OwnerState = "gone" | "runs here" | "runs elsewhere" | "unsure";

interface StandingDeps {
	/** Like that of this file; rejects with `InstanceRuns`. */
	untilSilent(instanceId: string): Promise<unknown>;
	journals: Pick<JournalHome, "isHere">;
}

/**
 * Waits until the instance is known to have ended or to run. "runs elsewhere" makes the operator remove a journal, so
 * it needs proof: an epoch without a journal on this machine renews its lease twice. An epoch that just joined may have
 * no journal yet.
 */
export async function ownerStateOf({ untilSilent, journals }: StandingDeps, id: string): Promise<OwnerState> {
	const seen = new Set<number>();
	for (;;) {
		const running = await runningOf(untilSilent(id));
		if (running === undefined) return "gone";
		if (!running.renews) return "unsure";
		if (journals.isHere({ id, epoch: running.epoch })) return "runs here";
		// Several instances may run under the same name, each with a copy, and renew in turns.
		if (seen.has(running.epoch)) return "runs elsewhere";
		seen.add(running.epoch);
	}
}

async function runningOf(silent: Promise<unknown>): Promise<InstanceRuns | undefined> {
	try {
		await silent;
		return undefined;
	} catch (error) {
		if (error instanceof InstanceRuns) return error;
		throw error;
	}
}
