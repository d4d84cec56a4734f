import type { HeartbeatStore } from "../cluster/heartbeat.ts";
import type { ReadEpochTimes } from "./epoch.ts";
import {
	type FoundJournal,
	type JournalClaim,
	type JournalOwner,
	type JournalRoot,
	OwnerUnknown,
} from "./journal-root.ts";
import { type LedgerCounts, reportNewSettlements } from "./ledger-counts.ts";
import type { KeptJournals, OwnerState } from "./lost-journal.ts";
import { type ReplayDeps, replayJournal, SettlementsRefused } from "./recovery.ts";
import type { LedgerStore } from "./store.ts";

/** Journals that are replayed at once; each has one segment in memory. */
const JOURNALS_AT_ONCE = 4;
/** Journals that may wait at once. Each keeps settlements in memory, or sends five queries a second. */
const WAITING_MAX = 16;
/** Milliseconds before a journal with refused records is tried again, because an operator must act first. */
const REFUSED_REST_MS = 600_000;

export interface JournalReplaysDeps extends Pick<ReplayDeps, "clock" | "log" | "isStopping"> {
	journals: JournalRoot;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	instanceId: string;
	/** Waits until it is known whether the instance that wrote a journal still runs; the journal may be a copy. */
	standingOf: (owner: JournalOwner) => Promise<OwnerState>;
	timesOf: ReadEpochTimes;
	heartbeats: Pick<HeartbeatStore, "position">;
	kept: KeptJournals;
	counts?: LedgerCounts;
}

/** `isKept`: all settlements of the journal had been acknowledged, so it is replayed only after a failover. */
type LeftJournal = FoundJournal & { readonly isKept?: boolean };

/** Replays journals on this machine whose owners have ended: earlier epochs of this process, and other instances. */
export function createJournalReplays(deps: JournalReplaysDeps) {
	const { journals, clock, log } = deps;
	const places = createPlaces(JOURNALS_AT_ONCE);
	const waitingPlaces = createPlaces(WAITING_MAX);
	const waiting = new Set<Promise<boolean>>();
	/** Time of the next try for each folder with refused records; at most one entry per journal. */
	const restUntilMs = new Map<string, number>();
	/** Folders of kept journals whose epochs the current database server records as ended. */
	let confirmed = new Set<string>();

	const rest = (folder: string) => void restUntilMs.set(folder, clock.monotonicMs() + REFUSED_REST_MS);
	const isResting = (folder: string) => (restUntilMs.get(folder) ?? 0) > clock.monotonicMs();

	/** Logs a folder that is not a journal, once per REFUSED_REST_MS, because the folder may stay for ever. */
	function noteUnreadable(folder: string, error: unknown): void {
		if (isResting(folder)) return;
		log.warn("a folder of journals cannot be read", { folder, error });
		rest(folder);
	}

	/** Starts a replay. Resolves when the replay has ended or waits. False: try the journal again later. */
	function begin(one: LeftJournal): Promise<boolean> {
		return new Promise((resolve, reject) => {
			const over = recoverOne(one, () => {
				waiting.add(over);
				resolve(true);
			});
			over.then(resolve, reject).finally(() => waiting.delete(over));
		});
	}

	/** Replays a journal. False: try it again later. `onWait` is called when the replay starts to wait. */
	async function recoverOne({ id, epoch, folder, isKept }: LeftJournal, onWait: () => void): Promise<boolean> {
		if (isResting(folder)) return false;
		await places.take();
		/** The semaphore of which this journal holds a permit now. */
		let at = places;
		const moveTo = async (next: typeof places) => {
			// Takes the permit for waiting first, so that the number of journals in memory stays bounded.
			if (next === waitingPlaces) await next.take();
			at.give();
			if (next === places) await next.take();
			at = next;
		};
		let claim: JournalClaim | undefined;
		try {
			claim = journals.claim(id, epoch, { create: false, folder });
			if (!claim) return true;
			const { owner, isAtHome } = claim;
			const named = { instance: owner.id, epoch: owner.epoch };
			if (claim.isCopy) {
				// The process with the instance's current journal replays this one too, as each worker does after a reboot.
				if (isAtHome && id !== deps.instanceId && journals.isHeldByAnother(id)) return true;
				log.info("a journal was not created here: replaying it once its instance has ended", named);
				// A running owner still spends from leases that the replay would close, so the replay waits for its end.
				await moveTo(waitingPlaces);
				onWait();
				const standing = await deps.standingOf(owner);
				await moveTo(places);
				// Leaves the journal to the next search: its owner may be a process that this one has just replaced.
				if (standing === "unsure" || (standing === "runs here" && isAtHome)) return true;
				if (standing !== "gone") {
					log.error("a journal is a copy of a running instance's; leaving it alone", named);
					rest(folder);
					return false;
				}
			}
			log.info("replaying a journal", named);
			const inBooks = await nameInBooks(claim);
			const stepAside = async () => {
				if (at === waitingPlaces) return;
				await moveTo(waitingPlaces);
				onWait();
			};
			const store = reportNewSettlements(deps.storeFor(inBooks.id, inBooks.epoch), (count) => {
				if (isKept && deps.counts) deps.counts.sentAgain += count;
			});
			const { server } = await deps.heartbeats.position();
			const counts = await replayJournal({ ...deps, store, stepAside, refused: [] }, claim.disk);
			log[counts.damagedBytes > 0 ? "warn" : "info"]("a journal was replayed", { ...named, ...counts });
			const { ended } = await deps.timesOf(inBooks);
			if ((await deps.heartbeats.position()).server !== server) throw new Error("the database moved to another server");
			deps.kept.keep(claim, inBooks, ended);
			restUntilMs.delete(folder);
			return true;
		} catch (error) {
			if (error instanceof SettlementsRefused || error instanceof OwnerUnknown) rest(folder);
			log.warn("a journal could not be replayed", { instance: id, epoch, folder, error });
			return false;
		} finally {
			claim?.release();
			at.give();
		}
	}

	/** Owner for the replay: a restored database may have issued the epoch's number to another epoch. */
	async function nameInBooks({ owner, began }: JournalClaim): Promise<JournalOwner> {
		if (began === undefined || (await deps.timesOf(owner)).began === began) return owner;
		return { id: `${owner.id}~${began}`, epoch: owner.epoch };
	}

	/** Kept journals whose epochs had ended on the previous database server, but have not on the current one. */
	async function unconfirmed(): Promise<readonly LeftJournal[]> {
		const found: LeftJournal[] = [];
		for (const one of deps.kept.list()) {
			// Keeps the set of this server, in case the database moves to another server during the query.
			const here = confirmed;
			if (here.has(one.folder)) continue;
			if ((await deps.timesOf(one)).ended === one.ended) here.add(one.folder);
			else found.push({ ...one, isKept: true });
		}
		if (found.length > 0)
			log.warn("the database lost the end of epochs: replaying their journals", { epochs: found.length });
		return found;
	}

	return {
		/** Compares all kept journals with the database again. Call it when the database server changed. */
		doubtKept: () => (confirmed = new Set()),
		/**
		 * Starts replays of all journals found. Resolves when each has ended, failed, or waits for a locked row or for its
		 * owner's end. Returns how many to try again.
		 */
		async look() {
			const found: LeftJournal[] = [...journals.list(noteUnreadable), ...(await unconfirmed())];
			// This instance's own journals come first, before journals that only wait.
			found.sort((a, b) => Number(b.id === deps.instanceId) - Number(a.id === deps.instanceId));
			return countOf(await Promise.all(found.map(begin)));
		},
		/** Number of journals that wait for a locked row or for their owner's end. */
		waiting: () => waiting.size,
		/** Resolves when no journal waits any more. Returns how many to try again. */
		ended: async () => countOf(await Promise.all(waiting)),
	};
}

const countOf = (outcomes: readonly boolean[]) => outcomes.filter((isOver) => !isOver).length;

/** A semaphore with `count` permits, granted in the order of requests. */
function createPlaces(count: number) {
	let free = count;
	const line: (() => void)[] = [];
	return {
		async take(): Promise<void> {
			if (free > 0) free -= 1;
			else await new Promise<void>((resolve) => line.push(resolve));
		},
		give() {
			const next = line.shift();
			if (next === undefined) free += 1;
			else next();
		},
	};
}
