import { Counter, Gauge, Histogram as PromHistogram, Registry } from "prom-client";
import type { Histogram } from "../base/histogram.ts";

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

/** A histogram whose counts are kept where the work is done. */
export interface MetricHistogram {
	/** Ends in `_seconds` if it is of times. */
	readonly name: string;
	readonly help: string;
	/** In which its bounds and sum are kept; times are told in seconds. */
	readonly unit: "ms" | "count";
	read(): Histogram;
}

/**
 * Nothing is counted for the sake of metrics: every value is read from where the work keeps it. `labels` stand on each
 * series.
 */
export function createMetrics(
	readings: readonly Reading[],
	histograms: readonly MetricHistogram[],
	labels: Readonly<Record<string, string>> = {},
): Metrics {
	const registry = new Registry();
	registry.setDefaultLabels({ ...labels });
	for (const reading of readings) register(registry, reading);
	for (const histogram of histograms) registry.registerMetric(new KeptHistogram(histogram));
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
	readonly #of: MetricHistogram;

	constructor(of: MetricHistogram) {
		super({ name: of.name, help: of.help, registers: [] });
		this.#of = of;
	}

	/** What the registry writes. */
	async getForPromString() {
		const { name, help, unit, read } = this.#of;
		const { bounds, counts, sum } = read();
		const told = (kept: number) => (unit === "ms" ? kept / 1_000 : kept);
		const value = (part: string, value: number, labels = {}) => ({ metricName: `${name}_${part}`, labels, value });
		let count = 0;
		const buckets = counts.map((inBucket, at) => {
			count += inBucket;
			const bound = bounds[at];
			return value("bucket", count, { le: bound === undefined ? "+Inf" : String(told(bound)) });
		});
		return {
			name,
			help,
			type: "histogram",
			values: [...buckets, value("sum", told(sum)), value("count", count)],
		};
	}
}
