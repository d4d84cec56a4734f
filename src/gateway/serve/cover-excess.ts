import type { Admitted } from "../../admission/admission.ts";
import { freeOf } from "../../ledger/ledger.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { subUsd } from "../../money/nano-usd.ts";

/**
 * Prepares a cost above the reservation, which the settlement takes from this instance's free credit. Draws the missing
 * credit from Postgres and other instances. The settlement writes off whatever is missing or unreachable. Usually
 * returns undefined: nothing is to be drawn.
 */
export function coverExcess({ hold }: Admitted, cost: NanoUsd): Promise<void> | undefined {
	if (cost <= hold.reserved) return undefined;
	const excess = subUsd(cost, hold.reserved);
	if (excess <= freeOf(hold)) return undefined;
	return draw(hold, excess);
}

async function draw({ ledger, admitted }: Admitted["hold"], excess: NanoUsd): Promise<void> {
	try {
		const shortage = await ledger.draw(admitted, excess);
		if (shortage !== null && shortage.availableNanoUsd > 0) await ledger.draw(admitted, shortage.availableNanoUsd);
	} catch {
		// The database is unreachable: the answer does not wait for it.
	}
}
