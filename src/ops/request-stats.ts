import { createHistogram } from "../base/histogram.ts";
import type { MetricHistogram, MetricReading } from "./metrics.ts";

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

/** Maximum number of series, because the catalogue's models change. Requests to further models count as `other`. */
const SERIES_MAX = 2_000;
const OTHER_MODELS = "other";
/** Codes that exist with 0 from the start: Prometheus's `increase()` misses the first count of a new series. */
const ALARMING_CODES = ["internal_error", "overloaded", "service_unavailable", "upstream_error", "upstream_timeout"];

export type RequestStats = ReturnType<typeof createRequestStats>;

/** Counts settled requests as plain numbers, which become metrics only when metrics are requested. */
export function createRequestStats() {
	/** By model; then the matching endpoint and ending is searched, so that a look-up builds no string. */
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
		record(request: SettledRequest): void {
			const counted = seriesOf(request);
			counted.requests += 1;
			counted.promptTokens += request.promptTokens;
			counted.completionTokens += request.completionTokens;
			counted.chargedNanoUsd += request.charged;
			if (request.first !== null) first.observe(request.first);
			duration.observe(request.ms);
		},
		/** Counts a request that was answered with an error, by its error code. */
		refuse: (code: string) => void refusals.set(code, (refusals.get(code) ?? 0) + 1),
		/** Records the time between two events of a stream. */
		gap: (ms: number) => gaps.observe(ms),
		series: () => [...series.values()].flat(),
		refusals: (): Iterable<[string, number]> => refusals,
		firstTokenMs: () => first,
		durationMs: () => duration,
		gapMs: () => gaps,
	};
}

const SERIES_LABELS = ["endpoint", "model", "ending"];

export function requestReadings(stats: RequestStats): MetricReading[] {
	const total = (name: string, help: string, pick: (series: RequestSeries) => number): MetricReading => ({
		name,
		help,
		labels: SERIES_LABELS,
		read: () =>
			[...stats.series()].map((series) => {
				const { endpoint, model, ending } = series;
				return { labels: { endpoint, model, ending }, value: pick(series) };
			}),
	});
	return [
		total("tollgate_requests_total", "Settled requests.", (series) => series.requests),
		total("tollgate_prompt_tokens_total", "Prompt tokens of settled requests.", (series) => series.promptTokens),
		total(
			"tollgate_completion_tokens_total",
			"Generated tokens of settled requests.",
			(series) => series.completionTokens,
		),
		total("tollgate_charged_nano_usd_total", "Charges, nano-dollars.", (series) => series.chargedNanoUsd),
		{
			name: "tollgate_errors_total",
			help: "Requests answered with an error status.",
			labels: ["code"],
			read: () => [...stats.refusals()].map(([code, value]) => ({ labels: { code }, value })),
		},
	];
}

export function requestHistograms(stats: RequestStats): MetricHistogram[] {
	return [
		{ name: "tollgate_first_token_seconds", help: "Time to the first token.", unit: "ms", read: stats.firstTokenMs },
		{ name: "tollgate_duration_seconds", help: "Time from admission to the end.", unit: "ms", read: stats.durationMs },
		{
			name: "tollgate_event_gap_seconds",
			help: "Time between two events of a stream, without waits for a slow reader.",
			unit: "ms",
			read: stats.gapMs,
		},
	];
}
