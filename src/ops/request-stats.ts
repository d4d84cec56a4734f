import { createHistogram, type Histogram } from "../base/histogram.ts";

/**
 * Counts of settled requests, cheap enough for the hot path: plain numbers, turned into metrics only when requested.
 */
export interface RequestStats {
	record(request: SettledRequest): void;
	/** Counts a request that was answered with an error status, by its code. */
	refuse(code: string): void;
	/** Records the wait for an event of a stream, after the first. */
	gap(ms: number): void;
	series(): Iterable<RequestSeries>;
	refusals(): Iterable<readonly [code: string, count: number]>;
	/** Times to the first token. */
	firstTokenMs(): Histogram;
	durationMs(): Histogram;
	gapMs(): Histogram;
}

export interface SettledRequest {
	readonly endpoint: string;
	readonly model: string;
	readonly ending: string;
	readonly promptTokens: number;
	readonly completionTokens: number;
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

/**
 * The most series. Models change with the catalogue; further ones are counted together as the model `other`, with one
 * series per endpoint and ending.
 */
const SERIES_MAX = 2_000;
const OTHER_MODELS = "other";
/** Present from the start: `increase()` misses the first count of a new series. */
const ALARMING_CODES = ["internal_error", "overloaded", "service_unavailable", "upstream_error", "upstream_timeout"];

export function createRequestStats(): RequestStats {
	/** By model, then by endpoint and ending, so that a lookup builds no string. */
	const series = new Map<string, RequestSeries[]>();
	let seriesCount = 0;
	const refusals = new Map<string, number>(ALARMING_CODES.map((code) => [code, 0]));
	const first = createHistogram();
	const duration = createHistogram();
	const gaps = createHistogram();

	function seriesOf({ endpoint, model, ending }: Pick<SettledRequest, "endpoint" | "model" | "ending">): RequestSeries {
		const ofModel = series.get(model);
		for (const one of ofModel ?? []) if (one.endpoint === endpoint && one.ending === ending) return one;
		if (seriesCount >= SERIES_MAX && model !== OTHER_MODELS) return seriesOf({ endpoint, model: OTHER_MODELS, ending });
		const first = { endpoint, model, ending, requests: 0, promptTokens: 0, completionTokens: 0, chargedNanoUsd: 0 };
		seriesCount += 1;
		if (ofModel === undefined) series.set(model, [first]);
		else ofModel.push(first);
		return first;
	}

	return {
		record(request) {
			const counted = seriesOf(request);
			counted.requests += 1;
			counted.promptTokens += request.promptTokens;
			counted.completionTokens += request.completionTokens;
			counted.chargedNanoUsd += request.charged;
			if (request.first !== null) first.observe(request.first);
			duration.observe(request.ms);
		},
		refuse: (code) => void refusals.set(code, (refusals.get(code) ?? 0) + 1),
		gap: (ms) => gaps.observe(ms),
		series: () => [...series.values()].flat(),
		refusals: () => refusals,
		firstTokenMs: () => first,
		durationMs: () => duration,
		gapMs: () => gaps,
	};
}
