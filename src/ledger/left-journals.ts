import type { TimesOf } from "./epoch.ts";
import {
	type FoundJournal,
	type JournalClaim,
	type JournalHome,
	type JournalOwner,
	OwnerUnknown,
} from "./journal-home.ts";
import type { KeptJournals } from "./kept-journals.ts";
import type { OwnerState } from "./lost-journal.ts";
import { type HandInDeps, RecordsRefused, replay } from "./recovery.ts";
import type { LedgerStore } from "./store.ts";

/** Journals replayed at once, each with a segment in memory. */
const JOURNALS_AT_ONCE = 4;
/** Journals waiting at once, each with settlements in memory or five queries a second. */
const WAITING_MAX = 16;
/** Pause before a journal with refused records is retried: each try sends it whole, and an operator must act. */
const REFUSED_REST_MS = 600_000;

export interface LeftJournalsDeps extends Pick<HandInDeps, "clock" | "log" | "isStopping"> {
	journals: JournalHome;
	storeFor: (instanceId: string, epoch: number) => LedgerStore;
	instanceId: string;
	/** Waits until it is known whether a journal not created on this machine is a copy of a running instance's. */
	standingOf: (owner: JournalOwner) => Promise<OwnerState>;
	timesOf: TimesOf;
	kept: KeptJournals;
}

/** Journals on this machine whose owners have ended: earlier ones of this process, and those of other instances. */
export function createLeftJournals(deps: LeftJournalsDeps) {
	const { journals, clock, log } = deps;
	const places = createPlaces(JOURNALS_AT_ONCE);
	const waitingPlaces = createPlaces(WAITING_MAX);
	const waiting = new Set<Promise<boolean>>();
	/** Time of the next try per folder with refused records; not more than there are journals. */
	const restUntilMs = new Map<string, number>();
	/** Folders of kept journals whose end the present server knows. */
	const confirmed = new Set<string>();

	const rest = (folder: string) => void restUntilMs.set(folder, clock.monotonicMs() + REFUSED_REST_MS);
	const isResting = (folder: string) => (restUntilMs.get(folder) ?? 0) > clock.monotonicMs();

	/** Logged as rarely as a refused journal is retried, because a folder that is no journal may stay for ever. */
	function noteUnreadable(folder: string, error: unknown): void {
		if (isResting(folder)) return;
		log.warn("a folder of journals cannot be read", { folder, error });
		rest(folder);
	}

	/** Starts a replay. Resolves when it has ended or waits; false if it should be retried. */
	function begin(one: FoundJournal): Promise<boolean> {
		return new Promise((resolve, reject) => {
			const over = recoverOne(one, () => {
				waiting.add(over);
				resolve(true);
			});
			over.then(resolve, reject).finally(() => waiting.delete(over));
		});
	}

	/** Replays a journal. False if it should be retried. `onWait`: the caller need not wait any longer. */
	async function recoverOne({ id, epoch, folder }: FoundJournal, onWait: () => void): Promise<boolean> {
		if (isResting(folder)) return false;
		await places.take();
		/** Semaphore of which the journal occupies a place now. */
		let at = places;
		const moveTo = async (next: typeof places) => {
			// A replay keeps its place until a waiting place is free, which bounds memory.
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
				// After a reboot each worker replays its own journal; to other workers it looks like a running instance's copy.
				if (isAtHome && id !== deps.instanceId && journals.isHeldByAnother(id)) return true;
				log.info("a journal was not created here: replaying it once its instance has ended", named);
				// A running owner would continue to spend from leases that the replay closes, so its end is awaited first.
				await moveTo(waitingPlaces);
				onWait();
				const standing = await deps.standingOf(owner);
				await moveTo(places);
				// The same applies to a process that this one replaced: the next search tries again.
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
			const counts = await replay({ ...deps, store, stepAside, refused: [] }, claim.disk);
			log[counts.damagedBytes > 0 ? "warn" : "info"]("a journal was replayed", { ...named, ...counts });
			deps.kept.keep(claim, inBooks, (await deps.timesOf(inBooks)).ended);
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

	/** Owner under which to replay: in an older database the epoch's number may belong to another, present epoch. */
	async function nameInBooks({ owner, began }: JournalClaim): Promise<JournalOwner> {
		if (began === undefined || (await deps.timesOf(owner)).began === began) return owner;
		return { id: `${owner.id}~${began}`, epoch: owner.epoch };
	}

	/** Journals in the books of a former server, and not in those of the present one. */
	async function unconfirmed(): Promise<readonly FoundJournal[]> {
		const found: FoundJournal[] = [];
		for (const one of deps.kept.list()) {
			if (confirmed.has(one.folder)) continue;
			if ((await deps.timesOf(one)).ended === one.ended) confirmed.add(one.folder);
			else found.push(one);
		}
		if (found.length > 0)
			log.warn("the database lost the end of epochs: replaying their journals", { epochs: found.length });
		return found;
	}

	return {
		/** The database has another history: kept journals are compared with it again. */
		doubtKept: () => confirmed.clear(),
		/**
		 * Replays all journals that are not being replayed. Resolves when each is done, failed, or waits for a locked row
		 * or for the proof that its instance ended. Returns how many to retry.
		 */
		async look() {
			const found = [...journals.list(noteUnreadable), ...(await unconfirmed())];
			// Copies of one instance wait for each other; this instance's own journals come first.
			found.sort((a, b) => Number(b.id === deps.instanceId) - Number(a.id === deps.instanceId));
			return countOf(await Promise.all(found.map(begin)));
		},
		/** Number of journals that wait; they do not delay others. */
		waiting: () => waiting.size,
		/** Resolves when none waits any more. Returns the number to retry. */
		ended: async () => countOf(await Promise.all(waiting)),
	};
}

const countOf = (outcomes: readonly boolean[]) => outcomes.filter((isOver) => !isOver).length;

/** A semaphore with `count` places, served in order. */
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
