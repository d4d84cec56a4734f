import type { MetricHistogram, Reading } from "./metrics.ts";
import type { RequestSeries, RequestStats } from "./request-stats.ts";

const SERIES_LABELS = ["endpoint", "model", "ending"];

export function requestReadings(stats: RequestStats): Reading[] {
	const total = (name: string, help: string, pick: (series: RequestSeries) => number): Reading => ({
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
			help: "Requests that were answered with an error status.",
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
			help: "How long a stream's next event was waited for, after the first; a slow reader does not count.",
			unit: "ms",
			read: stats.gapMs,
		},
	];
}
