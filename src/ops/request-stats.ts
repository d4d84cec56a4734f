/** Counts of settled requests, cheap enough for the hot path: plain numbers, turned into metrics when somebody asks. */
export interface RequestStats {
	record(request: SettledRequest): void;
	/** A request that was answered with an error status, by its code. */
	refuse(code: string): void;
	series(): Iterable<RequestSeries>;
	refusals(): Iterable<readonly [code: string, count: number]>;
	/** Times to the first token; cumulative counts a bucket. */
	firstTokenMs(): Histogram;
	durationMs(): Histogram;
}

export interface SettledRequest {
	readonly endpoint: string;
	readonly model: string;
	readonly ending: string;
	readonly prompt: number;
	readonly completion: number;
	readonly charged: number;
	readonly first: number | null;
	readonly ms: number;
}

export interface RequestSeries {
	readonly endpoint: string;
	readonly model: string;
	readonly ending: string;
	requests: number;
	promptTokens: number;
	completionTokens: number;
	chargedNanoUsd: number;
}

export interface Histogram {
	/** Upper bounds in milliseconds. */
	readonly bounds: readonly number[];
	/** One count a bound, and one for what is above the last. */
	readonly counts: readonly number[];
	readonly sum: number;
}

const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];
/** Models come and go with the catalogue; beyond this many series further ones are counted together. */
const SERIES_MAX = 2_000;

export function createRequestStats(): RequestStats {
	const series = new Map<string, RequestSeries>();
	const refusals = new Map<string, number>();
	const first = createHistogram();
	const duration = createHistogram();

	function seriesOf({ endpoint, model, ending }: SettledRequest): RequestSeries {
		const name = `${endpoint} ${ending} ${model}`;
		let found = series.get(name);
		if (found) return found;
		if (series.size >= SERIES_MAX) return seriesOf({ endpoint, model: "other", ending } as SettledRequest);
		found = { endpoint, model, ending, requests: 0, promptTokens: 0, completionTokens: 0, chargedNanoUsd: 0 };
		series.set(name, found);
		return found;
	}

	return {
		record(request) {
			const counted = seriesOf(request);
			counted.requests += 1;
			counted.promptTokens += request.prompt;
			counted.completionTokens += request.completion;
			counted.chargedNanoUsd += request.charged;
			if (request.first !== null) first.observe(request.first);
			duration.observe(request.ms);
		},
		refuse: (code) => void refusals.set(code, (refusals.get(code) ?? 0) + 1),
		series: () => series.values(),
		refusals: () => refusals,
		firstTokenMs: () => first,
		durationMs: () => duration,
	};
}

function createHistogram(): Histogram & { observe(valueMs: number): void } {
	const counts = new Array<number>(BOUNDS_MS.length + 1).fill(0);
	const histogram = {
		bounds: BOUNDS_MS,
		counts,
		sum: 0,
		observe(valueMs: number) {
			let at = 0;
			while (at < BOUNDS_MS.length && valueMs > (BOUNDS_MS[at] as number)) at += 1;
			counts[at] = (counts[at] as number) + 1;
			histogram.sum += valueMs;
		},
	};
	return histogram;
}
