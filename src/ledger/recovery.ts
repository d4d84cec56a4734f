import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { minUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent, SettledEvent } from "./event.ts";
import type { JournalDisk } from "./journal-disk.ts";
import type { JournalHome } from "./journal-home.ts";
import { decodeRecords, RecordKind } from "./journal-record.ts";
import type { Progress } from "./ledger.ts";
import type { LedgerStore } from "./store.ts";
import { LeaseExceeded } from "./store.ts";

/** A request that the journal opened and did not close, settled at its bound. */
export interface RecoveredRequest {
	readonly event: SettledEvent;
	/** What it received at least; what it was charged beyond that is credited back. */
	readonly delivered: NanoUsd;
}

export interface Replay {
	/** Settlements as they stand in the journal, JSON. */
	readonly settled: readonly string[];
	readonly recovered: readonly RecoveredRequest[];
	/** Bytes behind the first torn or damaged record of a segment; they were not read. */
	readonly damagedBytes: number;
}

const BATCH_REQUESTS = 500;
const RETRY_MS = 200;
const RETRIES_MAX = 300;

/**
 * Reads what a dead epoch left behind. A request without a settlement is charged what its journal says was delivered
 * at most, and credited the part of it that was only allowed, not yet delivered.
 */
export function replayJournal(disk: JournalDisk, nowWallMs: number): Replay {
	const open = new Map<string, { admitted: AdmittedEvent; progress: Progress | undefined }>();
	const settled: string[] = [];
	const closed = new Set<string>();
	let damagedBytes = 0;
	for (const name of disk.list()) {
		const bytes = disk.read(name);
		const { records, intactBytes } = decodeRecords(bytes);
		damagedBytes += bytes.length - intactBytes;
		for (const { kind, body } of records) {
			const record = JSON.parse(body) as { id: string };
			if (kind === RecordKind.admit) open.set(record.id, { admitted: record as AdmittedEvent, progress: undefined });
			else if (kind === RecordKind.settle) {
				open.delete(record.id);
				if (!closed.has(record.id)) settled.push(body);
				closed.add(record.id);
			} else {
				const request = open.get(record.id);
				if (request) request.progress = record as unknown as Progress;
			}
		}
	}
	const recovered = [...open.values()].map(({ admitted, progress }) => recoveredRequest(admitted, progress, nowWallMs));
	return { settled, recovered, damagedBytes };
}

function recoveredRequest(
	admitted: AdmittedEvent,
	progress: Progress | undefined,
	nowWallMs: number,
): RecoveredRequest {
	const charged = minUsd(progress?.bound ?? ZERO_USD, admitted.reserved);
	const delivered = minUsd(progress?.delivered ?? ZERO_USD, charged);
	const event: SettledEvent = {
		...admitted,
		charged,
		off: ZERO_USD,
		basis: "recovered",
		ending: "crashed",
		status: 500,
		prompt: progress?.prompt ?? 0,
		cached: 0,
		completion: progress?.completion ?? 0,
		reasoning: 0,
		units: 0,
		replica: null,
		first: null,
		ms: Math.max(0, nowWallMs - admitted.at),
	};
	return { event, delivered };
}

/** Brings a replay into Postgres and closes the epoch. Every step may be repeated after a crash. */
async function settleReplay(deps: { store: LedgerStore; clock: Clock; log: Log }, replay: Replay): Promise<void> {
	const { store, clock, log } = deps;
	const events = [...replay.settled, ...replay.recovered.map(({ event }) => JSON.stringify(event))];
	for (let at = 0; at < events.length; at += BATCH_REQUESTS) {
		const batch = events.slice(at, at + BATCH_REQUESTS);
		await untilDone(clock, log, () => settleBatch(store, log, batch));
	}
	for (const { event, delivered } of replay.recovered) {
		if (event.charged > delivered) await untilDone(clock, log, () => store.creditUndelivered(event.id, delivered));
	}
	await untilDone(clock, log, () => store.close());
}

async function settleBatch(store: LedgerStore, log: Log, batch: readonly string[]): Promise<void> {
	try {
		if ((await store.flush(`[${batch.join(",")}]`, "[]")) === "ok") return;
	} catch (error) {
		if (!(error instanceof LeaseExceeded)) throw error;
		// A settlement that cannot be read falls back on its bound, though others have spent the difference since. What
		// credit does not cover then is written off; the books stay within their limits.
		log.error("a damaged journal claims more than its lease holds; it is settled as late", { error });
		await store.close();
	}
	for (const event of batch) await store.settleLate(event);
}

async function untilDone(clock: Clock, log: Log, work: () => Promise<void>): Promise<void> {
	for (let attempt = 1; ; attempt++) {
		try {
			return await work();
		} catch (error) {
			if (attempt >= RETRIES_MAX) throw error;
			log.warn("a step of the recovery was not carried out; trying again", { error });
			await sleep(clock, RETRY_MS);
		}
	}
}

/**
 * Replays every journal on this machine whose owner is gone, its own earlier ones and those of others.
 * Gives the number of epochs recovered.
 */
export async function recoverJournals(deps: {
	journals: JournalHome;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	clock: Clock;
	log: Log;
}): Promise<number> {
	const { journals, clock, log } = deps;
	let recovered = 0;
	for (const { id, epoch } of journals.list()) {
		const claim = journals.claim(id, epoch, { create: false });
		if (!claim) continue;
		try {
			const replay = replayJournal(claim.disk, clock.wallMs());
			const { settled, damagedBytes } = replay;
			const counts = { settled: settled.length, recovered: replay.recovered.length, damagedBytes };
			log[damagedBytes > 0 ? "warn" : "info"]("replaying a journal", { instance: id, epoch, ...counts });
			await settleReplay({ store: deps.storeFor(id, epoch), clock, log }, replay);
			claim.disk.destroy();
			recovered += 1;
		} finally {
			claim.release();
		}
	}
	return recovered;
}

/**
 * An operator attests that the journals of this identity are lost: its dead epochs are closed at what Postgres knows.
 * Refused while an epoch may still be admitting.
 */
export async function recoverLost(
	statements: Statements,
	instanceId: string,
): Promise<{ epochs: number; leases: number }> {
	const rows = await statements<{ epoch: number; running: boolean }>`
		select epoch, state in ('live', 'joining') and lease_until > clock_timestamp() as running
		from instance where id = ${instanceId} and state <> 'left' order by epoch`;
	if (rows.length === 0) throw new Fault("not_found", `No unfinished epoch of instance ${instanceId}.`);
	if (rows.some((row) => row.running))
		throw new Fault("conflict", `Instance ${instanceId} is running: its lease is not over.`);
	let leases = 0;
	for (const { epoch } of rows) {
		const [row] = await statements<{ closed: number }>`select ledger_close(${instanceId}, ${epoch}, true) as closed`;
		leases += Number(row?.closed ?? 0);
	}
	return { epochs: rows.length, leases };
}
