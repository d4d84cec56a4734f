import type { HeartbeatStore } from "../cluster/heartbeat.ts";
import type { ReadEpochTimes } from "./epoch.ts";
import {
	type FoundJournal,
	type JournalClaim,
	type JournalHome,
	type JournalOwner,
	OwnerUnknown,
} from "./journal-home.ts";
import type { KeptJournals } from "./kept-journals.ts";
import { type LedgerCounts, tellingNew } from "./ledger-counts.ts";
import type { OwnerState } from "./lost-journal.ts";
import { type HandInDeps, RecordsRefused, replayJournal } from "./recovery.ts";
import type { LedgerStore } from "./store.ts";

/** Journals replayed at once, each with a segment in memory. */
const JOURNALS_AT_ONCE = 4;
/** Journals that wait at once. Each waits either with settlements in memory or with five queries a second. */
const WAITING_MAX = 16;
/** Pause before a journal with refused records is retried as a whole: an operator must act first. */
const REFUSED_REST_MS = 600_000;

export interface LeftJournalsDeps extends Pick<HandInDeps, "clock" | "log" | "isStopping"> {
	journals: JournalHome;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	instanceId: string;
	/** Waits until it is known whether the instance that wrote a journal still runs; the journal may be a copy. */
	standingOf: (owner: JournalOwner) => Promise<OwnerState>;
	timesOf: ReadEpochTimes;
	heartbeats: Pick<HeartbeatStore, "position">;
	kept: KeptJournals;
	counts?: LedgerCounts;
}

/** `isKept`: its settlements had been acknowledged. */
type LeftJournal = FoundJournal & { readonly isKept?: boolean };

/** Replays journals on this machine whose owners have ended: earlier epochs of this process, and other instances. */
export function createLeftJournals(deps: LeftJournalsDeps) {
	const { journals, clock, log } = deps;
	const places = createPlaces(JOURNALS_AT_ONCE);
	const waitingPlaces = createPlaces(WAITING_MAX);
	const waiting = new Set<Promise<boolean>>();
	/** Per folder with refused records: the time of the next try. Bounded by the number of journals. */
	const restUntilMs = new Map<string, number>();
	/** Folders of kept journals whose epoch's end the present server has. */
	let confirmed = new Set<string>();

	const rest = (folder: string) => void restUntilMs.set(folder, clock.monotonicMs() + REFUSED_REST_MS);
	const isResting = (folder: string) => (restUntilMs.get(folder) ?? 0) > clock.monotonicMs();

	/** Logs a folder that is no journal, at most once per REFUSED_REST_MS: it may stay for ever. */
	function noteUnreadable(folder: string, error: unknown): void {
		if (isResting(folder)) return;
		log.warn("a folder of journals cannot be read", { folder, error });
		rest(folder);
	}

	/** Starts a replay. Resolves when it has ended or waits. False: try it again later. */
	function begin(one: LeftJournal): Promise<boolean> {
		return new Promise((resolve, reject) => {
			const over = recoverOne(one, () => {
				waiting.add(over);
				resolve(true);
			});
			over.then(resolve, reject).finally(() => waiting.delete(over));
		});
	}

	/** Replays a journal. False: try again later. `onWait`: the replay waits, so the caller can go on. */
	async function recoverOne({ id, epoch, folder, isKept }: LeftJournal, onWait: () => void): Promise<boolean> {
		if (isResting(folder)) return false;
		await places.take();
		/** The semaphore in which this journal occupies a place now. */
		let at = places;
		const moveTo = async (next: typeof places) => {
			// Takes a waiting place before it gives up its own, so that memory stays bounded.
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
				// That process replays the journal itself, as each worker does after a reboot.
				if (isAtHome && id !== deps.instanceId && journals.isHeldByAnother(id)) return true;
				log.info("a journal was not created here: replaying it once its instance has ended", named);
				// A running owner would spend from leases that the replay closes, so its end is awaited first.
				await moveTo(waitingPlaces);
				onWait();
				const standing = await deps.standingOf(owner);
				await moveTo(places);
				// Leaves the journal to the next search: the owner may be a process that this one just replaced.
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
			const store = tellingNew(deps.storeFor(inBooks.id, inBooks.epoch), (count) => {
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
			if (error instanceof RecordsRefused || error instanceof OwnerUnknown) rest(folder);
			log.warn("a journal could not be replayed", { instance: id, epoch, folder, error });
			return false;
		} finally {
			claim?.release();
			at.give();
		}
	}

	/** Owner under which to replay the journal. An older database may have given the epoch's number to another epoch. */
	async function nameInBooks({ owner, began }: JournalClaim): Promise<JournalOwner> {
		if (began === undefined || (await deps.timesOf(owner)).began === began) return owner;
		return { id: `${owner.id}~${began}`, epoch: owner.epoch };
	}

	/** Kept journals whose epochs a former server had closed and the present one has not. */
	async function unconfirmed(): Promise<readonly LeftJournal[]> {
		const found: LeftJournal[] = [];
		for (const one of deps.kept.list()) {
			// Not the set of a former server, if the database moves in between.
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
		/** Called when the database moved: compares kept journals with the new server again. */
		doubtKept: () => (confirmed = new Set()),
		/**
		 * Starts replays of all journals found. Resolves when each has ended, failed, or waits for a locked row or its
		 * owner's end. Returns how many to try again.
		 */
		async look() {
			const found: LeftJournal[] = [...journals.list(noteUnreadable), ...(await unconfirmed())];
			// This instance's own journals come first. Copies of one instance's journal wait for each other.
			found.sort((a, b) => Number(b.id === deps.instanceId) - Number(a.id === deps.instanceId));
			return countOf(await Promise.all(found.map(begin)));
		},
		/** Number of journals that wait; they do not delay others. */
		waiting: () => waiting.size,
		/** Resolves when no journal waits any more. Returns how many to try again. */
		ended: async () => countOf(await Promise.all(waiting)),
	};
}

const countOf = (outcomes: readonly boolean[]) => outcomes.filter((isOver) => !isOver).length;

/** A semaphore with `count` places, granted in the order of requests. */
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
