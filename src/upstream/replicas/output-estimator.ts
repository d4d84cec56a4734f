/**
 * What finished streams of one replica say that an event and a byte of output are worth, for those that do not finish.
 * In memory alone, and for estimates alone: a count that a stream has itself is always believed before it.
 */
export interface OutputEstimator {
	/** A stream that came to its end with the server's own count. */
	learn(tokens: number, size: OutputSize): void;
	/** Likely tokens of this much output, rounded down; undefined until enough is known. */
	tokensOf(size: OutputSize): number | undefined;
}

interface OutputSize {
	/** Events that carried output. */
	readonly events: number;
	/** Bytes of it. */
	readonly bytes: number;
}

/** Below this little is known: the end of a short stream weighs as much as its words, and one stream is no rule. */
const TOKENS_KNOWN_MIN = 64;
const STREAMS_KNOWN_MIN = 3;
/** How much of what was known before still counts after one more stream: some thirty streams are remembered. */
const KEPT_SHARE = 0.97;
/** A longer stream counts for no more than one of so many events. */
const EVENTS_WEIGHED_MAX = 512;
/** A stream that is further off than this from what is known counts as if it were so far off. */
const OUTLIER_FACTOR = 4;
/** So that a whole number that was divided and multiplied stays one. */
const ROUNDING = 1e-6;

/** One way to tell tokens, with how far off it has been. */
interface Measure {
	tokens: number;
	amount: number;
	error: number;
}

export function createOutputEstimator(): OutputEstimator {
	const byEvents: Measure = { tokens: 0, amount: 0, error: 0 };
	const byBytes: Measure = { tokens: 0, amount: 0, error: 0 };
	let streams = 0;

	const isKnown = () => streams >= STREAMS_KNOWN_MIN && byEvents.tokens >= TOKENS_KNOWN_MIN;

	function note(measure: Measure, told: number, amount: number): void {
		const expected = measure.amount === 0 ? told : rateOf(measure) * amount;
		const tokens = isKnown() ? Math.min(Math.max(told, expected / OUTLIER_FACTOR), expected * OUTLIER_FACTOR) : told;
		measure.error = measure.error * KEPT_SHARE + Math.abs(tokens - expected);
		measure.tokens = measure.tokens * KEPT_SHARE + tokens;
		measure.amount = measure.amount * KEPT_SHARE + amount;
	}

	return {
		learn(told, { events, bytes }) {
			if (events === 0 || bytes === 0 || told === 0) return;
			// The last token may be the mark of the end, which carries nothing. More tokens than bytes are no count.
			const tokens = Math.min(told === events + 1 ? events : told, bytes);
			const weight = Math.min(1, EVENTS_WEIGHED_MAX / events);
			note(byEvents, tokens * weight, events * weight);
			note(byBytes, tokens * weight, bytes * weight);
			streams += 1;
		},
		tokensOf({ events, bytes }) {
			if (!isKnown()) return undefined;
			const likely = byEvents.error <= byBytes.error ? rateOf(byEvents) * events : rateOf(byBytes) * bytes;
			return Math.floor(likely + ROUNDING);
		},
	};
}

function rateOf({ tokens, amount }: Measure): number {
	return tokens / amount;
}
