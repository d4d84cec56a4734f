import type { Log } from "../base/log.ts";
import type { HoldOf } from "./hold.ts";
import type { Journal } from "./journal.ts";

/** Running requests that one admission carries forward at most. */
const CARRIED_A_REQUEST = 4;

/**
 * A request that runs on and on keeps the segment that holds its admission, and so all behind it. So with each new
 * request some old ones are written anew, into the present segment: the journal is as long as what is open and not
 * yet in Postgres. `running` is in the order of segments.
 */
export function createCarrying<Owner>(deps: { journal: Journal; log: Log }, running: Set<HoldOf<Owner>>): () => void {
	const { journal, log } = deps;
	/** No running request was admitted in a segment before this one. */
	let nothingBefore = 0;

	return function carryForward() {
		if (journal.keepsFrom() <= nothingBefore) return;
		for (let carried = 0; carried < CARRIED_A_REQUEST; carried++) {
			const [oldest] = running;
			if (!oldest || oldest.segment >= journal.keepsFrom()) {
				nothingBefore = journal.keepsFrom();
				return;
			}
			const { id } = oldest.admitted;
			const from = oldest.segment;
			try {
				oldest.segment = journal.carry(
					JSON.stringify({ ...oldest.admitted, reserved: oldest.reserved }),
					oldest.progress && JSON.stringify({ id, ...oldest.progress }),
				);
			} catch (error) {
				log.debug("a running request could not be carried forward in the journal", { request: id, error });
				return;
			}
			journal.acknowledge(from);
			running.delete(oldest);
			running.add(oldest);
		}
	};
}
