import { Counter, Gauge, Histogram as PromHistogram, Registry } from "prom-client";
import type { Histogram, RequestSeries, RequestStats } from "./request-stats.ts";

/** One number that is read when metrics are asked for. */
export interface Reading {
	/** Ends in `_total` if it only grows while the process lives: a counter. All others are gauges. */
	readonly name: string;
	readonly help: string;
	/** Names of its labels; none for a single number. */
	readonly labels?: readonly string[];
	read(): ReadValue | Promise<ReadValue>;
}

export type ReadValue =
	| number
	| readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];

export interface Metrics {
	/** The text of GET /metrics, in Prometheus' exposition format. */
	text(): Promise<string>;
	readonly contentType: string;
}

/** Nothing is counted for the sake of metrics: every value is read from where the work keeps it. */
export function createMetrics(stats: RequestStats, readings: readonly Reading[]): Metrics {
	const registry = new Registry();
	for (const reading of [...readings, ...requestReadings(stats), ...processReadings()]) register(registry, reading);
	registry.registerMetric(
		new KeptHistogram("tollgate_first_token_seconds", "Time to the first token.", stats.firstTokenMs),
	);
	registry.registerMetric(
		new KeptHistogram("tollgate_duration_seconds", "Time from admission to the end.", stats.durationMs),
	);
	return { text: () => registry.metrics(), contentType: registry.contentType };
}

function register(registry: Registry, { name, help, labels, read }: Reading): void {
	const options = { name, help, labelNames: [...(labels ?? [])], registers: [registry] };
	const all = async () => {
		const now = await read();
		return typeof now === "number" ? [{ labels: {}, value: now }] : now;
	};
	if (name.endsWith("_total")) {
		new Counter({
			...options,
			async collect() {
				const now = await all();
				this.reset();
				for (const { labels, value } of now) this.inc(labels, value);
			},
		});
		return;
	}
	new Gauge({
		...options,
		async collect() {
			const now = await all();
			this.reset();
			for (const { labels, value } of now) this.set(labels, value);
		},
	});
}

/** A histogram whose counts are kept elsewhere. */
class KeptHistogram extends PromHistogram {
	readonly #about: { readonly name: string; readonly help: string };
	readonly #of: () => Histogram;

	constructor(name: string, help: string, of: () => Histogram) {
		super({ name, help, registers: [] });
		this.#about = { name, help };
		this.#of = of;
	}

	/** What the registry writes. Bounds and sum are kept in milliseconds. */
	async getForPromString() {
		const { bounds, counts, sum } = this.#of();
		const value = (part: string, value: number, labels = {}) => ({
			metricName: `${this.#about.name}_${part}`,
			labels,
			value,
		});
		let count = 0;
		const buckets = counts.map((inBucket, at) => {
			count += inBucket;
			const boundMs = bounds[at];
			return value("bucket", count, { le: boundMs === undefined ? "+Inf" : String(boundMs / 1_000) });
		});
		return {
			...this.#about,
			type: "histogram",
			values: [...buckets, value("sum", sum / 1_000), value("count", count)],
		};
	}
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
