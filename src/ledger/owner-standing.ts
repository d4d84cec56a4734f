import type { JournalHome, JournalOwner } from "./journal-home.ts";
import { InstanceRuns } from "./lost-journal.ts";

/**
 * What became of the instance that wrote a journal which was not made here. `unsure`: it joins again and again, or ended while it was
 * looked at.
 */
export type OwnerStanding = "gone" | "runs here" | "runs elsewhere" | "unsure";

interface StandingDeps {
	/** As that of `lost-journal.ts`: rejects with `InstanceRuns`. */
	untilSilent(instanceId: string): Promise<unknown>;
	journals: Pick<JournalHome, "isHere">;
}

/**
 * Waits until the instance is known to be gone, or seen to run. That it runs elsewhere tells people to remove a journal, so
 * it is said of nothing less than this: an epoch of it has no journal here, and renews its lease after that was seen. One that
 * has just joined may have no journal yet, one that ended has none any more.
 */
export async function standingOf({ untilSilent, journals }: StandingDeps, id: string): Promise<OwnerStanding> {
	const seen = new Set<number>();
	for (;;) {
		const running = await runningOf(untilSilent(id));
		if (running === undefined) return "gone";
		if (!running.renews) return "unsure";
		const owner: JournalOwner = { id, epoch: running.epoch };
		if (journals.isHere(owner)) return "runs here";
		// Several may run under one name, each from a copy, and renew in turns.
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
