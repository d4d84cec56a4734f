interface OutputSize {
	readonly events: number;
	readonly bytes: number;
}

/** Counted tokens needed before the first estimate, because a single stream may be an exception. */
const TOKENS_KNOWN_MIN = 64;
const STREAMS_KNOWN_MIN = 3;
/** Factor for the weight of earlier streams at each new one, so that about thirty streams determine the estimate. */
const KEPT_SHARE = 0.97;
/** Longer streams have the weight of a stream with this many events. */
const EVENTS_WEIGHED_MAX = 512;
/** A stream that differs from the estimate by more than this factor counts as if it differed by exactly this factor. */
const OUTLIER_FACTOR = 4;
/** Compensates rounding errors, so that whole numbers stay whole. */
const ROUNDING = 1e-6;

/** Weighted sums over streams: tokens, and events or bytes. */
interface Measure {
	tokens: number;
	amount: number;
	error: number;
}

/**
 * Learns from a replica's finished streams how many tokens an event and a byte have, to estimate the tokens of
 * unfinished streams. A stream's own count always has priority.
 */
export function createOutputEstimator() {
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
		/** Learns from a finished stream for which the server reported the token count. */
		learn(told: number, { events, bytes }: OutputSize) {
			if (events === 0 || bytes === 0 || told === 0) return;
			// The last token may be an end token without an event. A token has at least one byte.
			const tokens = Math.min(told === events + 1 ? events : told, bytes);
			const weight = Math.min(1, EVENTS_WEIGHED_MAX / events);
			note(byEvents, tokens * weight, events * weight);
			note(byBytes, tokens * weight, bytes * weight);
			streams += 1;
		},
		/** Estimated tokens of this output, rounded down; undefined until enough streams have finished. */
		tokensOf({ events, bytes }: OutputSize): number | undefined {
			if (!isKnown()) return undefined;
			const likely = byEvents.error <= byBytes.error ? rateOf(byEvents) * events : rateOf(byBytes) * bytes;
			return Math.floor(likely + ROUNDING);
		},
	};
}

const rateOf = ({ tokens, amount }: Measure): number => tokens / amount;
