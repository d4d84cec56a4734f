import { type Clock, sleep } from "../base/clock.ts";
import type { FoundJournal, JournalClaim, JournalHome, JournalOwner } from "./journal-home.ts";
import { OwnerUnknown } from "./journal-home.ts";
import type { OwnerStanding } from "./lost-journal.ts";
import { type HandInDeps, handIn, RecordsRefused } from "./recovery.ts";
import type { LedgerStore } from "./store.ts";

/** Each replay keeps a segment in memory. */
const JOURNALS_AT_ONCE = 4;
/** Each wait queries the instance's state five times a second. */
const COPIES_AT_ONCE = 4;
/**
 * Each waiting replay keeps its settlements in memory. Further ones release them and read the journal again later,
 * using at most a quarter of the time.
 */
const WAITING_FOR_ROWS_MAX = 16;
const REST_SHARE = 3;
const REST_MS_MIN = 1_000;

class TooManyWait extends Error {}

export interface LeftJournalsDeps extends Pick<HandInDeps, "clock" | "log" | "isStopping"> {
	journals: JournalHome;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	/** This process's resting journals. */
	refusedJournals: ReturnType<typeof createRefusedJournals>;
	instanceId: string;
	/** Waits until it is known whether a journal that was not created here is a copy. */
	standingOf: (journal: JournalClaim) => Promise<OwnerStanding>;
	/** When the epoch began that the database knows by this number. */
	beganOf: (owner: JournalOwner) => Promise<string | undefined>;
}

/** Journals on this machine whose owners have ended: this process's own earlier ones, and those of other instances. */
export function createLeftJournals(deps: LeftJournalsDeps) {
	const { journals, clock, log, refusedJournals } = deps;
	const places = createPlaces(JOURNALS_AT_ONCE);
	const ofCopies = createPlaces(COPIES_AT_ONCE);
	const ofRows = createPlaces(WAITING_FOR_ROWS_MAX);
	const waiting = new Set<Promise<boolean>>();
	/** Journals that waited, ended since the last look began, should be tried again, and are not reported yet. */
	let untold = 0;

	/** Logged as rarely as a refused journal is retried: the folder may be no journal, and stay. */
	function noteUnreadable(folder: string, error: unknown): void {
		if (!refusedJournals.mayTry(folder, 0)) return;
		log.warn("a folder of journals cannot be read", { folder, error });
		refusedJournals.refused(folder, 0);
	}

	function told(): number {
		const count = untold;
		untold = 0;
		return count;
	}

	/** True once the journal waits. */
	function begin(one: FoundJournal): Promise<boolean> {
		const { promise, resolve, reject } = Promise.withResolvers<boolean>();
		const over = recoverOne(one, () => {
			waiting.add(over);
			resolve(true);
		});
		const end = () => waiting.delete(over);
		over
			.then((isOver) => {
				if (waiting.has(over) && !isOver) untold += 1;
				resolve(isOver);
			}, reject)
			.finally(end);
		return promise;
	}

	/** False if it should be tried again. `onWait`: the caller need not wait for it. */
	async function recoverOne({ id, epoch, folder }: FoundJournal, onWait: () => void): Promise<boolean> {
		if (!refusedJournals.mayTry(folder, epoch)) return false;
		await places.take();
		let claim: JournalClaim | undefined;
		try {
			claim = journals.claim(id, epoch, { create: false, folder });
			if (!claim) return true;
			const taken = claim;
			const { owner, isAtHome } = taken;
			const named = { instance: owner.id, epoch: owner.epoch };
			if (claim.isCopy) {
				// After a reboot each worker replays its own journal. To other workers its instance would appear to run, as if
				// the journal were a copy.
				if (isAtHome && id !== deps.instanceId && journals.isHeldByAnother(id)) return true;
				log.info("a journal was not made here: it is handed in once its instance is known to be gone", named);
				// A running owner would go on spending from leases that the replay closes. Its settlements would be recorded
				// already, as of a crash.
				const standing = await aside(ofCopies, onWait, () => deps.standingOf(taken));
				// The same applies to a process whose place this one took: the next look tries again.
				if (standing === "unsure" || (standing === "runs here" && isAtHome)) return true;
				if (standing !== "gone") {
					log.error("a journal is a copy of one whose instance runs; it is left alone", named);
					refusedJournals.refused(folder, epoch);
					return false;
				}
			}
			log.info("replaying a journal", named);
			const counts = await handInBesideOthers(claim, onWait);
			log[counts.damagedBytes > 0 ? "warn" : "info"]("a journal was handed in", { ...named, ...counts });
			claim.disk.destroy();
			refusedJournals.handedIn(folder, epoch);
			return true;
		} catch (error) {
			if (error instanceof RecordsRefused || error instanceof OwnerUnknown) refusedJournals.refused(folder, epoch);
			log.warn("a journal could not be handed in", { instance: id, epoch, folder, error });
			return false;
		} finally {
			claim?.release();
			places.give();
		}
	}

	/** An older database repeats numbers: this journal must not spend what it granted to that number's present epoch. */
	async function nameInBooks({ owner, began }: JournalClaim): Promise<JournalOwner> {
		if (began === undefined || (await deps.beganOf(owner)) === began) return owner;
		return { id: `${owner.id}~${began}`, epoch: owner.epoch };
	}

	async function handInBesideOthers(claim: JournalClaim, onWait: () => void) {
		const { id, epoch } = await nameInBooks(claim);
		const store = deps.storeFor(id, epoch);
		let hasPlace = false;
		const givePlace = () => {
			if (hasPlace) ofRows.give();
			hasPlace = false;
		};
		const whileHeld = <T>(work: () => Promise<T>, isInMemory: boolean): Promise<T> => {
			if (!isInMemory) givePlace();
			else hasPlace ||= ofRows.tryTake();
			if (isInMemory && !hasPlace) throw new TooManyWait();
			return leavingPlace(onWait, work);
		};
		try {
			for (;;) {
				const beganMs = clock.monotonicMs();
				try {
					return await handIn({ ...deps, store, whileHeld, refused: [] }, claim.disk);
				} catch (error) {
					if (!(error instanceof TooManyWait)) throw error;
				}
				const restMs = Math.max(REST_MS_MIN, REST_SHARE * (clock.monotonicMs() - beganMs));
				await leavingPlace(onWait, () => sleep(clock, restMs));
			}
		} finally {
			givePlace();
		}
	}

	/** Gives its place among the replays to another one while `work` takes long. */
	async function leavingPlace<T>(onWait: () => void, work: () => Promise<T>): Promise<T> {
		places.give();
		onWait();
		try {
			return await work();
		} finally {
			await places.take();
		}
	}

	/** Runs long `work` at one of the places `at`. */
	function aside<T>(at: ReturnType<typeof createPlaces>, onWait: () => void, work: () => Promise<T>): Promise<T> {
		return leavingPlace(onWait, async () => {
			await at.take();
			try {
				return await work();
			} finally {
				at.give();
			}
		});
	}

	return {
		/**
		 * Replays all journals that are not being replayed yet, some at a time. Resolves when each is done, failed, or
		 * waits: for a locked row, or for proof that its instance has ended. Returns how many should be tried again,
		 * including those that waited and ended since.
		 */
		async look() {
			// The new listing includes them.
			untold = 0;
			const found = [...journals.list(noteUnreadable)];
			// Copies wait for each other; this instance's own come first.
			found.sort((a, b) => Number(b.id === deps.instanceId) - Number(a.id === deps.instanceId));
			const failed = countOf(await Promise.all(found.map(begin)));
			return failed + told();
		},
		/** Journals that wait; they do not delay others. */
		waiting: () => waiting.size,
		/** Resolves when none waits any more. Returns how many of them should be tried again. */
		async ended() {
			await Promise.all(waiting);
			return told();
		},
	};
}

const countOf = (outcomes: readonly boolean[]) => outcomes.filter((isOver) => !isOver).length;

/** A semaphore of `count` places; waiters are served in order. */
function createPlaces(count: number) {
	let free = count;
	const line: (() => void)[] = [];

	function tryTake(): boolean {
		if (free === 0) return false;
		free -= 1;
		return true;
	}

	return {
		take: () => (tryTake() ? Promise.resolve() : new Promise<void>((resolve) => line.push(resolve))),
		tryTake,
		give() {
			const next = line.shift();
			if (next === undefined) free += 1;
			else next();
		},
	};
}

const REFUSED_REST_MS_MIN = 60_000;
const REFUSED_REST_MS_MAX = 3_600_000;

/**
 * Decides when journals with refused records are tried again. Each try reads and sends the whole journal. A record
 * refused three times in a row is hardly accepted ten seconds later: the operator has to act first.
 */
export function createRefusedJournals({ clock }: { clock: Clock }) {
	/** At most as many as there are journals. */
	const resting = new Map<string, { untilMs: number; restMs: number }>();
	const nameOf = (instanceId: string, epoch: number) => `${instanceId}/${epoch}`;
	return {
		mayTry: (instanceId: string, epoch: number) =>
			(resting.get(nameOf(instanceId, epoch))?.untilMs ?? 0) <= clock.monotonicMs(),
		/** The journal stays, and rests twice as long each time. */
		refused(instanceId: string, epoch: number) {
			const before = resting.get(nameOf(instanceId, epoch));
			const restMs = before === undefined ? REFUSED_REST_MS_MIN : Math.min(2 * before.restMs, REFUSED_REST_MS_MAX);
			resting.set(nameOf(instanceId, epoch), { untilMs: clock.monotonicMs() + restMs, restMs });
		},
		handedIn(instanceId: string, epoch: number) {
			resting.delete(nameOf(instanceId, epoch));
		},
	};
}
