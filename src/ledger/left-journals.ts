import { sleep } from "../base/clock.ts";
import type { FoundJournal, JournalClaim, JournalHome, JournalOwner } from "./journal-home.ts";
import { OwnerUnknown } from "./journal-home.ts";
import type { OwnerStanding } from "./owner-standing.ts";
import type { HandInDeps } from "./recovery.ts";
import { handIn, RecordsRefused } from "./recovery.ts";
import type { RefusedJournals } from "./refused-journals.ts";
import type { LedgerStore } from "./store.ts";

/** Of each a segment is in memory. */
const JOURNALS_AT_ONCE = 4;
/** Each asks for its instance five times a second. */
const COPIES_AT_ONCE = 4;
/** Of each what is to be settled is in memory. More let go of it and are read again, each at most a quarter of the time. */
const WAITING_FOR_ROWS_MAX = 16;
const REST_SHARE = 3;
const REST_MS_MIN = 1_000;

class TooManyWait extends Error {}

export interface LeftJournalsDeps extends Pick<HandInDeps, "clock" | "log" | "isStopping"> {
	journals: JournalHome;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	/** Of this process: those that rest. */
	refusedJournals: RefusedJournals;
	/** Of this process. */
	instanceId: string;
	/** Waits until it knows whether a journal that was not made here is a copy. */
	standingOf: (journal: JournalClaim) => Promise<OwnerStanding>;
	/** When the epoch began that the database knows by this number. */
	beganOf: (owner: JournalOwner) => Promise<string | undefined>;
}

/** Journals on this machine whose owners are gone: this process's own earlier ones, and those of others. */
export interface LeftJournals {
	/**
	 * Replays all that are not being replayed yet, some at a time. Resolves when each is handed in, could not be, or waits: until a
	 * row is free that somebody holds, or its instance is known to be gone. Gives how many should be tried again, also of those that
	 * waited and ended meanwhile.
	 */
	look(): Promise<number>;
	/** Those that wait keep no other one waiting. */
	waiting(): number;
	/** Resolves when none waits any more. Gives how many of them should be tried again. */
	ended(): Promise<number>;
}

export function createLeftJournals(deps: LeftJournalsDeps): LeftJournals {
	const { journals, clock, log, refusedJournals } = deps;
	const places = createPlaces(JOURNALS_AT_ONCE);
	const ofCopies = createPlaces(COPIES_AT_ONCE);
	const ofRows = createPlaces(WAITING_FOR_ROWS_MAX);
	const waiting = new Set<Promise<boolean>>();
	/** Of those that waited, ended since the last look began, and should be tried again: nobody has heard of them. */
	let untold = 0;

	/** Said as seldom as a refused journal is tried again: what lies there may be no journal, and stay. */
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

	/** True once it waits. */
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

	/** False if it should be tried again. `onWait`: nobody need wait for it. */
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
				// Behind a restart of the machine each worker hands in its own: to others its instance runs, as that of a copy.
				if (isAtHome && id !== deps.instanceId && journals.isHeldByAnother(id)) return true;
				log.info("a journal was not made here: it is handed in once its instance is known to be gone", named);
				// Its owner would go on spending what is closed here, and what it settles would be on record already, as of a crash.
				const standing = await aside(ofCopies, onWait, () => deps.standingOf(taken));
				// So it is with what a process settles whose place this one took: it looks again.
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

	/** A database of an older state gives numbers again, and what it granted to one that has this number now is not this journal's to spend. */
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

	/** Leaves its place among those that are handed in to another one while it does what takes long. */
	async function leavingPlace<T>(onWait: () => void, work: () => Promise<T>): Promise<T> {
		places.give();
		onWait();
		try {
			return await work();
		} finally {
			await places.take();
		}
	}

	/** Does what takes long at a place among such. */
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
		async look() {
			// Those are listed again.
			untold = 0;
			const found = [...journals.list(noteUnreadable)];
			// Of copies, which wait for each other, this instance's own come first.
			found.sort((a, b) => Number(b.id === deps.instanceId) - Number(a.id === deps.instanceId));
			const failed = countOf(await Promise.all(found.map(begin)));
			return failed + told();
		},
		waiting: () => waiting.size,
		async ended() {
			await Promise.all(waiting);
			return told();
		},
	};
}

const countOf = (outcomes: readonly boolean[]) => outcomes.filter((isOver) => !isOver).length;

/** So many may be at something at once; others wait for a place, in their order. */
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
