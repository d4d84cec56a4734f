interface OutputSize {
	readonly events: number;
	readonly bytes: number;
}

/** Minimum before an estimate: one stream may be an exception, and its end weighs as much as its text. */
const TOKENS_KNOWN_MIN = 64;
const STREAMS_KNOWN_MIN = 3;
/** Weight of earlier streams after one more: about thirty streams are remembered. */
const KEPT_SHARE = 0.97;
/** A longer stream counts like one of this many events. */
const EVENTS_WEIGHED_MAX = 512;
/** A stream further from the estimate than this factor counts as this far. */
const OUTLIER_FACTOR = 4;
/** Keeps a whole number whole after division and multiplication. */
const ROUNDING = 1e-6;

/** One basis for estimates, with its accumulated error. */
interface Measure {
	tokens: number;
	amount: number;
	error: number;
}

/**
 * Learns from a replica's finished streams how many tokens an event and a byte are worth, for unfinished streams. A
 * stream's own count always takes precedence.
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
		/** Learns from a finished stream with the server's own count. */
		learn(told: number, { events, bytes }: OutputSize) {
			if (events === 0 || bytes === 0 || told === 0) return;
			// The last token may be the end token, which has no event. More tokens than bytes are impossible.
			const tokens = Math.min(told === events + 1 ? events : told, bytes);
			const weight = Math.min(1, EVENTS_WEIGHED_MAX / events);
			note(byEvents, tokens * weight, events * weight);
			note(byBytes, tokens * weight, bytes * weight);
			streams += 1;
		},
		/** Estimated tokens of this much output, rounded down; undefined until enough is known. */
		tokensOf({ events, bytes }: OutputSize): number | undefined {
			if (!isKnown()) return undefined;
			const likely = byEvents.error <= byBytes.error ? rateOf(byEvents) * events : rateOf(byBytes) * bytes;
			return Math.floor(likely + ROUNDING);
		},
	};
}

function rateOf({ tokens, amount }: Measure): number {
	return tokens / amount;
}
