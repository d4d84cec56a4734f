import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "./files.ts";

const INTERVAL_MS = 60_000;

/** Deletes the bytes of expired files. Instances share the work. */
export function startFileSweep(deps: { files: Pick<Files, "sweep">; clock: Clock; log: Log }): {
	stop(): Promise<void>;
} {
	const { files, clock, log } = deps;
	let cancel: (() => void) | undefined;
	let sweeping: Promise<void> | undefined;
	let stopped = false;

	async function sweep(): Promise<void> {
		try {
			while (!stopped && (await files.sweep()) > 0);
		} catch (error) {
			log.debug("expired files could not be read; trying again", { error });
		}
	}

	function wake(): void {
		if (stopped) return;
		cancel = clock.after(INTERVAL_MS, () => {
			sweeping = sweep().then(wake);
		});
	}

	wake();
	return {
		async stop() {
			stopped = true;
			cancel?.();
			await sweeping;
		},
	};
}
