import type { Log } from "../base/log.ts";
import type { SlotPool } from "../base/slot-pool.ts";
import type { HoldOf } from "./hold.ts";
import type { Journal } from "./journal.ts";

/** Limit of running requests that one admission copies forward. */
const CARRIED_A_REQUEST = 4;
/** Limit of running requests that one admission examines to find them. */
const LOOKED_AT_A_REQUEST = 64;

/**
 * A long-running request keeps the segment with its admission, and so all later segments. Each new request therefore
 * copies some old admissions to the present segment, which bounds the journal by what is open or not yet in Postgres.
 */
export function createJournalCompactor<Owner>(
	deps: { journal: Journal; log: Log },
	running: SlotPool<HoldOf<Owner>>,
): () => void {
	const { journal, log } = deps;
	/** Slots still to visit for the segment `wanted`, in a cycle. A slot taken during it is in the present segment. */
	let wanted = 0;
	let left = 0;
	let next = 0;

	/** Copies an admission forward. False if the write failed: the next request tries again. */
	function carry(oldest: HoldOf<Owner>): boolean {
		const { id } = oldest.admitted;
		const from = oldest.segment;
		try {
			oldest.segment = journal.carry(
				JSON.stringify({ ...oldest.admitted, reserved: oldest.reserved }),
				oldest.progress && JSON.stringify({ id, ...oldest.progress }),
			);
		} catch (error) {
			log.debug("a running request could not be carried forward in the journal", { request: id, error });
			return false;
		}
		journal.acknowledge(from);
		return true;
	}

	return function compactJournal() {
		const keepsFrom = journal.keepsFrom();
		if (keepsFrom !== wanted) {
			wanted = keepsFrom;
			left = running.reach;
		}
		let carried = 0;
		for (let looked = 0; left > 0 && looked < LOOKED_AT_A_REQUEST && carried < CARRIED_A_REQUEST; looked++) {
			if (next >= running.reach) next = 0;
			const hold = running.at(next);
			if (hold !== undefined && hold.segment < keepsFrom) {
				if (!carry(hold)) return;
				carried += 1;
			}
			next += 1;
			left -= 1;
		}
	};
}
