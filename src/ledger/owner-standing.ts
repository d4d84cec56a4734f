import type { JournalHome, JournalOwner } from "./journal-home.ts";
import { InstanceRuns } from "./lost-journal.ts";

/** State of the instance that wrote a foreign journal. `unsure`: it joins repeatedly, or ended during the check. */
export type OwnerStanding = "gone" | "runs here" | "runs elsewhere" | "unsure";

interface StandingDeps {
	/** As in `lost-journal.ts`: rejects with `InstanceRuns`. */
	untilSilent(instanceId: string): Promise<unknown>;
	journals: Pick<JournalHome, "isHere">;
}

/**
 * Waits until the instance is known to have ended, or seen to run. "runs elsewhere" makes the operator remove a
 * journal, so it needs proof: an epoch without a journal here renews its lease after that was seen. An epoch that just
 * joined may have no journal yet; one that ended has none any more.
 */
export async function standingOf({ untilSilent, journals }: StandingDeps, id: string): Promise<OwnerStanding> {
	const seen = new Set<number>();
	for (;;) {
		const running = await runningOf(untilSilent(id));
		if (running === undefined) return "gone";
		if (!running.renews) return "unsure";
		const owner: JournalOwner = { id, epoch: running.epoch };
		if (journals.isHere(owner)) return "runs here";
		// Several instances may run under one name, each from a copy, and renew in turns.
		if (seen.has(running.epoch)) return "runs elsewhere";
		seen.add(running.epoch);
	}
}

async function runningOf(silent: Promise<unknown>): Promise<InstanceRuns | undefined> {
	try {
		await silent;
		return undefined;
	} catch (error) {
		if (error instanceof InstanceRuns) return error;
		throw error;
	}
}
