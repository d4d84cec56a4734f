import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createSilenceTimes, type FenceStore, type LaggingInstance } from "./fence.ts";

export interface WitnessStore extends Pick<FenceStore, "server" | "quiet"> {
	/** Instances whose lease has not ended as far as any other instance has seen. */
	live(): Promise<readonly LaggingInstance[]>;
	/** Records that an instance was silent for longer than its lease, unless the lease was renewed after that beat. */
	silent(id: string, epoch: number, beat: number): Promise<void>;
}

/**
 * Every instance watches the others by its own monotonic clock. So a revocation need not wait for a crashed instance's
 * lease, and a refusal of credit knows which slices will not be returned. A silent instance is not fenced off: it may
 * still renew.
 */
export function startWitness(
	{ store, clock, log }: { store: WitnessStore; clock: Clock; log: Log },
	options: { intervalMs: number; graceMs: number },
): { stop(): void } {
	const silences = createSilenceTimes(clock);
	let stopped = false;
	let cancel = clock.after(options.intervalMs, tick);

	async function look(): Promise<void> {
		const { mark, unquietMs } = await store.server();
		const names = new Set<string>();
		// Restarts the wait, because a rolled-back server has the same label, and time before the rollback must not count.
		if (unquietMs > 0) {
			const serverName = `server ${mark}`;
			if (silences.ofMs(serverName, 0) > unquietMs + options.graceMs) await store.quiet(mark);
			else names.add(serverName);
		}
		const instances = await store.live();
		for (const { id, epoch, beat, ttlMs } of instances) {
			const name = `${id} ${epoch}`;
			names.add(name);
			if (silences.ofMs(name, beat) <= ttlMs + options.graceMs) continue;
			log.warn("an instance has been silent for longer than its lease", { silent: id, epoch });
			await store.silent(id, epoch, beat);
		}
		silences.keep(names);
	}

	function tick(): void {
		look()
			.catch((error) => log.debug("the other instances could not be read", { error }))
			.finally(() => {
				if (!stopped) cancel = clock.after(options.intervalMs, tick);
			});
	}

	return {
		stop() {
			stopped = true;
			cancel();
		},
	};
}
