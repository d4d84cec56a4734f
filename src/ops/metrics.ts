import { Gauge, Registry } from "prom-client";
import type { Histogram, RequestSeries, RequestStats } from "./request-stats.ts";

/** One number that is read when metrics are asked for. */
export interface Reading {
	readonly name: string;
	readonly help: string;
	/** Names of its labels; none for a single number. */
	readonly labels?: readonly string[];
	read(): number | readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

export interface Metrics {
	/** The text of GET /metrics, in Prometheus' exposition format. */
	text(): Promise<string>;
	readonly contentType: string;
}

/** Nothing is counted for the sake of metrics: every value is read from where the work keeps it. */
export function createMetrics(stats: RequestStats, readings: readonly Reading[]): Metrics {
	const registry = new Registry();
	for (const { name, help, labels, read } of [...readings, ...requestReadings(stats), ...processReadings()]) {
		new Gauge({
			name,
			help,
			labelNames: [...(labels ?? [])],
			registers: [registry],
			collect() {
				const now = read();
				this.reset();
				if (typeof now === "number") this.set(now);
				else for (const { labels, value } of now) this.set(labels, value);
			},
		});
	}
	return { text: () => registry.metrics(), contentType: registry.contentType };
}

const SERIES_LABELS = ["endpoint", "model", "ending"];

function requestReadings(stats: RequestStats): Reading[] {
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
		...histogramReadings("tollgate_first_token_ms", "Milliseconds to the first token.", () => stats.firstTokenMs()),
		...histogramReadings("tollgate_duration_ms", "Milliseconds from admission to the end.", () => stats.durationMs()),
	];
}

function histogramReadings(name: string, help: string, of: () => Histogram): Reading[] {
	const buckets = () => {
		const { bounds, counts } = of();
		let sum = 0;
		return counts.map((count, at) => {
			sum += count;
			return { labels: { le: at < bounds.length ? String(bounds[at]) : "+Inf" }, value: sum };
		});
	};
	return [
		{ name: `${name}_bucket`, help, labels: ["le"], read: buckets },
		{ name: `${name}_sum`, help, read: () => of().sum },
		{ name: `${name}_count`, help, read: () => of().counts.reduce((total, count) => total + count, 0) },
	];
}

function processReadings(): Reading[] {
	return [
		{ name: "process_resident_memory_bytes", help: "Resident memory.", read: () => process.memoryUsage().rss },
		{ name: "process_heap_bytes", help: "Memory of the JavaScript heap.", read: () => process.memoryUsage().heapUsed },
		{
			name: "process_cpu_seconds_total",
			help: "User and system time.",
			read: () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
		},
	];
}
