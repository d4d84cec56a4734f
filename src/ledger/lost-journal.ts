import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { createSilenceTimes, type FenceStore } from "../cluster/fence.ts";
import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import { isSystemError } from "./journal-disk.ts";
import type { FoundJournal, JournalClaim, JournalOwner, JournalRoot } from "./journal-root.ts";

const LOOK_MS = 200;
const CLOSE_BATCH = 500;

interface EpochRow {
	epoch: number;
	beat: string;
	state: "joining" | "live" | "silent" | "dead" | "closing";
	ttl_ms: number;
	/** Database server and start of the epoch. They distinguish epochs whose number was issued twice. */
	place: string;
}

/** An instance that should have ended is running. `renews` is false if it has only joined and may end soon. */
export class InstanceRunning extends Fault {
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
 * Closes the epochs of an instance whose journals an operator declares lost, with the settlements that Postgres has.
 * Fault `conflict` if the instance runs, `not_found` if it is unknown.
 */
export async function recoverLostInstance(
	deps: SilenceDeps,
	instanceId: string,
	options: { graceMs: number },
): Promise<{ epochs: number; leases: number }> {
	const rows = await waitUntilSilent(deps, instanceId, options);
	if (rows.length === 0) throw new Fault("not_found", `No unfinished epoch of instance ${instanceId}.`);
	return closeAll(deps, instanceId, rows);
}

/**
 * Waits until no epoch of this instance may admit requests, by this process's clock, and fences the epochs. Returns the
 * epochs that have not ended. Throws `InstanceRunning` if an epoch renews its lease or a new one joins. Ignores the
 * caller's own epochs. `settled`: also waits until no epoch may settle requests that it admitted.
 */
export async function waitUntilSilent(
	{ statements, fence, clock }: SilenceDeps,
	instanceId: string,
	options: { graceMs: number; settled?: boolean; isOwn?: (epoch: number) => boolean; isStopping?: () => boolean },
): Promise<readonly EpochRow[]> {
	const silences = createSilenceTimes(clock);
	const first = new Map<string, string>();
	let known: ReadonlySet<number> | undefined;
	const newcomers = new Set<number>();
	/** By epoch: number of the last heartbeat, after which the epoch was silent for long enough. */
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
		// Throws if a new epoch joins, because an instance that starts again and again would be awaited for ever.
		for (const { epoch } of rows.filter((row) => !known?.has(row.epoch))) {
			// Throws only at the second sight of a new epoch: it may be the caller's own, which joined during this query.
			if (newcomers.has(epoch)) throw new InstanceRunning(instanceId, epoch, false);
			newcomers.add(epoch);
		}
		const unsure = rows.filter(mayRun);
		if (unsure.length === 0) return rows;
		for (const { epoch, beat, state, ttl_ms, place } of unsure) {
			const [number, was] = [Number(beat), first.get(`${epoch} ${state}`)];
			if (state !== "silent" && was !== undefined && was !== beat) throw new InstanceRunning(instanceId, epoch, true);
			first.set(`${epoch} ${state}`, beat);
			// The state is part of the key, because fencing changes the beat. Another process has awaited a `silent` epoch.
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

/** State of the instance that wrote a journal found here. `unsure`: it has just joined, or ended during the check. */
export type OwnerState = "gone" | "runs here" | "runs elsewhere" | "unsure";

interface StandingDeps {
	/** Like `waitUntilSilent` of this file, with its dependencies bound; rejects with `InstanceRunning`. */
	waitUntilSilent(instanceId: string): Promise<unknown>;
	journals: Pick<JournalRoot, "isHere">;
}

/**
 * Waits until the instance has ended or is known to run. After "runs elsewhere" an operator removes the journal, so the
 * result needs proof. The running epoch must have no journal on this machine and renew its lease twice: an epoch that
 * has just joined may have no journal yet.
 */
export async function waitForOwnerState({ waitUntilSilent, journals }: StandingDeps, id: string): Promise<OwnerState> {
	const seen = new Set<number>();
	for (;;) {
		const running = await runningOf(waitUntilSilent(id));
		if (running === undefined) return "gone";
		if (!running.renews) return "unsure";
		if (journals.isHere({ id, epoch: running.epoch })) return "runs here";
		// Several processes may run the instance with copies of its journal and renew alternately, so all are noted.
		if (seen.has(running.epoch)) return "runs elsewhere";
		seen.add(running.epoch);
	}
}

async function runningOf(silent: Promise<unknown>): Promise<InstanceRunning | undefined> {
	try {
		await silent;
		return undefined;
	} catch (error) {
		if (error instanceof InstanceRunning) return error;
		throw error;
	}
}

/** A journal whose settlements Postgres has, kept in case a failover loses the last commits. */
interface KeptJournal extends FoundJournal {
	/** End of the epoch according to the database. A server that lost the commit has another time, or none. */
	readonly ended: string;
}

export type KeptJournals = ReturnType<typeof openKeptJournals>;

/** Maximum bytes of all kept journals together; beyond it the oldest are deleted. */
const KEPT_BYTES_MAX = 256 * 1024 * 1024;
const NOTE_NAME = "ended";

export const KEEP_NONE: KeptJournals = { keep: (claim) => claim.disk.destroy(), list: () => [], makeRoom: () => false };

export function openKeptJournals({ clock }: { clock: Clock }, root: string, keepMs: number) {
	const removed = (folder: string) => rmSync(folder, { recursive: true, force: true });

	/** Kept journals, oldest first. */
	function all(): (KeptJournal & { readonly atMs: number; readonly bytes: number })[] {
		const found = namesIn(root).flatMap((name) => {
			const folder = join(root, name);
			try {
				const note = JSON.parse(readFileSync(join(folder, NOTE_NAME), "utf8")) as Omit<KeptJournal, "folder">;
				return [{ ...note, folder, atMs: statSync(join(folder, NOTE_NAME)).mtimeMs, bytes: bytesIn(folder) }];
			} catch {
				// Another process deleted the journal, or ended while moving it here, so there is nothing to list.
				return [];
			}
		});
		return found.sort((a, b) => a.atMs - b.atMs);
	}

	function trim(): void {
		let bytes = 0;
		for (const one of all().reverse()) {
			bytes += one.bytes;
			if (bytes > KEPT_BYTES_MAX || clock.wallMs() - one.atMs > keepMs) removed(one.folder);
		}
	}

	return {
		/** Keeps the journal of its owner after all its settlements were stored; deletes it if `ended` is undefined. */
		keep({ folder, disk }: JournalClaim, { id, epoch }: JournalOwner, ended: string | undefined) {
			if (keepMs === 0 || ended === undefined || bytesIn(folder) === 0) return disk.destroy();
			try {
				disk.freeReserve();
				writeFileSync(join(folder, NOTE_NAME), JSON.stringify({ id, epoch, ended }), { mode: 0o600 });
				mkdirSync(root, { recursive: true, mode: 0o700 });
				renameSync(folder, join(root, `${encodeURIComponent(id)} ${epoch} ${ended}`));
				trim();
			} catch (error) {
				if (!isSystemError(error)) throw error;
				disk.destroy();
			}
		},
		/** Lists kept journals, after deleting those older than `keepMs`. */
		list(): readonly KeptJournal[] {
			trim();
			return all();
		},
		/** Deletes all kept journals to make room on a full disk. True if there were any. */
		makeRoom() {
			const found = all();
			for (const { folder } of found) removed(folder);
			return found.length > 0;
		},
	};
}

function namesIn(folder: string): readonly string[] {
	try {
		return readdirSync(folder);
	} catch {
		return [];
	}
}

const bytesIn = (folder: string): number =>
	namesIn(folder).reduce((sum, name) => sum + (name.endsWith(".log") ? statSync(join(folder, name)).size : 0), 0);
