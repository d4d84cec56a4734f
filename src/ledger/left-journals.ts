import {
	type FoundJournal,
	type JournalClaim,
	type JournalHome,
	type JournalOwner,
	OwnerUnknown,
} from "./journal-home.ts";
import type { OwnerStanding } from "./lost-journal.ts";
import { type HandInDeps, handIn, RecordsRefused } from "./recovery.ts";
import type { LedgerStore } from "./store.ts";

/** Each replay keeps a segment in memory. */
const JOURNALS_AT_ONCE = 4;
/** Each journal that waits keeps its settlements in memory, or queries its instance's state five times a second. */
const WAITING_MAX = 16;
/** A refused record is hardly accepted soon, and each try sends the whole journal: the operator acts first. */
const REFUSED_REST_MS = 600_000;

export interface LeftJournalsDeps extends Pick<HandInDeps, "clock" | "log" | "isStopping"> {
	journals: JournalHome;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	instanceId: string;
	/** Waits until it is known whether a journal that was not created here is a copy. */
	standingOf: (owner: JournalOwner) => Promise<OwnerStanding>;
	/** When the epoch began that the database knows by this number. */
	beganOf: (owner: JournalOwner) => Promise<string | undefined>;
}

/** Journals on this machine whose owners have ended: this process's earlier ones, and other instances'. */
export function createLeftJournals(deps: LeftJournalsDeps) {
	const { journals, clock, log } = deps;
	const places = createPlaces(JOURNALS_AT_ONCE);
	const waitingPlaces = createPlaces(WAITING_MAX);
	const waiting = new Set<Promise<boolean>>();
	/** When folders with refused records are tried again; at most as many as there are journals. */
	const restUntilMs = new Map<string, number>();

	const rest = (folder: string) => void restUntilMs.set(folder, clock.monotonicMs() + REFUSED_REST_MS);
	const isResting = (folder: string) => (restUntilMs.get(folder) ?? 0) > clock.monotonicMs();

	/** Logged as rarely as a refused journal is retried: the folder may be no journal, and stay. */
	function noteUnreadable(folder: string, error: unknown): void {
		if (isResting(folder)) return;
		log.warn("a folder of journals cannot be read", { folder, error });
		rest(folder);
	}

	/** Resolves when it is over or waits, with false if it should be tried again. */
	function begin(one: FoundJournal): Promise<boolean> {
		return new Promise((resolve, reject) => {
			const over = recoverOne(one, () => {
				waiting.add(over);
				resolve(true);
			});
			over.then(resolve, reject).finally(() => waiting.delete(over));
		});
	}

	/** False if it should be tried again. `onWait`: the caller need not wait for it. */
	async function recoverOne({ id, epoch, folder }: FoundJournal, onWait: () => void): Promise<boolean> {
		if (isResting(folder)) return false;
		await places.take();
		/** Where the journal has a place now. */
		let at = places;
		const moveTo = async (next: typeof places) => {
			// A replay holds its place until one for waiting is free, which bounds the memory; never the other way round.
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
				// After a reboot each worker replays its own journal; to other workers it would look like a running instance's
				// copy.
				if (isAtHome && id !== deps.instanceId && journals.isHeldByAnother(id)) return true;
				log.info("a journal was not created here: replaying it once its instance has ended", named);
				// A running owner would go on spending from leases that the replay closes. Its settlements would be recorded
				// already, as of a crash.
				await moveTo(waitingPlaces);
				onWait();
				const standing = await deps.standingOf(owner);
				await moveTo(places);
				// The same applies to a process whose place this one took: the next look tries again.
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
			const store = deps.storeFor(inBooks.id, inBooks.epoch);
			const counts = await handIn({ ...deps, store, stepAside, refused: [] }, claim.disk);
			log[counts.damagedBytes > 0 ? "warn" : "info"]("a journal was replayed", { ...named, ...counts });
			claim.disk.destroy();
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

	/** An older database repeats numbers: this journal must not spend what it granted to that number's present epoch. */
	async function nameInBooks({ owner, began }: JournalClaim): Promise<JournalOwner> {
		if (began === undefined || (await deps.beganOf(owner)) === began) return owner;
		return { id: `${owner.id}~${began}`, epoch: owner.epoch };
	}

	return {
		/**
		 * Replays all journals not being replayed yet, some at a time. Resolves when each is done, failed, or waits for a
		 * locked row or for proof that its instance ended. Returns how many to try again.
		 */
		async look() {
			const found = [...journals.list(noteUnreadable)];
			// Copies wait for each other; this instance's own come first.
			found.sort((a, b) => Number(b.id === deps.instanceId) - Number(a.id === deps.instanceId));
			return countOf(await Promise.all(found.map(begin)));
		},
		/** Journals that wait; they do not delay others. */
		waiting: () => waiting.size,
		/** Resolves when none waits any more. Returns how many of them should be tried again. */
		ended: async () => countOf(await Promise.all(waiting)),
	};
}

const countOf = (outcomes: readonly boolean[]) => outcomes.filter((isOver) => !isOver).length;

/** A semaphore of `count` places; waiters are served in order. */
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
