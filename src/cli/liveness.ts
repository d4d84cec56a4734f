import type { Clock } from "../base/clock.ts";
import { sleep, withDeadline } from "../base/clock.ts";

/** Between two questions, and as long as one may go unanswered. */
const ASK_MS = 3_000;
/** So many unanswered ones in a row, over about 20 s, are no pause of a process that works. */
const UNANSWERED_MAX = 3;

export interface LivenessOptions {
	/** Rejects, or never ends, if nobody is there; its signal says when the answer is not waited for any more. */
	readonly ask: (signal: AbortSignal) => Promise<unknown>;
	/** Nobody answered for so long: called once, and nothing is asked any more. */
	readonly onHung: () => void;
}

/** Asks a process again and again whether it lives. The function that is returned ends that. */
export function watchLiveness(deps: { clock: Clock }, options: LivenessOptions): () => void {
	const { clock } = deps;
	let ended = false;

	async function answers(): Promise<boolean> {
		const leave = new AbortController();
		try {
			await withDeadline(clock, options.ask(leave.signal), ASK_MS, () => new Error("no answer"));
			return true;
		} catch {
			leave.abort();
			return false;
		}
	}

	async function watch(): Promise<void> {
		for (let unanswered = 0; unanswered < UNANSWERED_MAX; ) {
			await sleep(clock, ASK_MS);
			if (ended) return;
			unanswered = (await answers()) ? 0 : unanswered + 1;
			if (ended) return;
		}
		options.onHung();
	}

	void watch();
	return () => {
		ended = true;
	};
}
