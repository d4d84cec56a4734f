import type { Admitted } from "../../admission/admission.ts";
import { freeOf } from "../../ledger/ledger.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { subUsd } from "../../money/nano-usd.ts";

/**
 * A cost that passes what was reserved is taken from what is free on this instance: this brings there what Postgres and
 * other instances still have of its budgets. What nobody has, or cannot be asked for, is written off by the settlement.
 * Undefined, mostly, if nothing is to be got.
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
		// The database is away: the answer does not wait for it any longer.
	}
}
