import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Reconciliation } from "./reconcile.ts";

/** Checks the books at the start and again and again. */
export interface Reconciler {
	/** The newest result; undefined before the first. */
	last(): (Reconciliation & { readonly atMs: number }) | undefined;
	run(): Promise<Reconciliation>;
	stop(): void;
}

/** The checks read every usage row, so they are not run more often than this. */
const INTERVAL_MS = 15 * 60_000;
const RETRY_MS = 60_000;

export function createReconciler(deps: { check: () => Promise<Reconciliation>; clock: Clock; log: Log }): Reconciler {
	const { clock, log } = deps;
	let last: (Reconciliation & { atMs: number }) | undefined;
	let stopped = false;
	let cancel = clock.after(0, tick);

	async function run(): Promise<Reconciliation> {
		const result = await deps.check();
		last = { ...result, atMs: clock.wallMs() };
		const broken = result.checks.filter((check) => !check.ok);
		if (broken.length > 0) log.error("the books are broken", { broken });
		return result;
	}

	function tick(): void {
		run().then(
			() => schedule(INTERVAL_MS),
			(error) => {
				log.warn("the books could not be checked", { error });
				schedule(RETRY_MS);
			},
		);
	}

	function schedule(delayMs: number): void {
		if (!stopped) cancel = clock.after(delayMs, tick);
	}

	return {
		last: () => last,
		run,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
