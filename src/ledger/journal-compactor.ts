import type { Log } from "../base/log.ts";
import type { SlotPool } from "../base/slot-pool.ts";
import type { HoldOf } from "./hold.ts";
import type { Journal } from "./journal.ts";

/** Maximum number of running requests whose records one admission copies. */
const CARRIED_A_REQUEST = 4;
/** Maximum number of running requests that one admission examines to find those with old records. */
const LOOKED_AT_A_REQUEST = 64;

/**
 * Keeps the journal small. Segments are deleted in order, and only without running requests, so one long request would
 * keep all later segments. So each new request copies the records of some old running requests to the current segment.
 */
export function createJournalCompactor<Owner>(
	{ journal, log }: { journal: Journal; log: Log },
	running: SlotPool<HoldOf<Owner>>,
): () => void {
	/** `wanted`: oldest segment to keep; `left`: slots still to examine for it; `next`: next slot to examine. */
	let wanted = 0;
	let left = 0;
	let next = 0;

	/** Copies a running request's records to the current segment. False if the write failed. */
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
