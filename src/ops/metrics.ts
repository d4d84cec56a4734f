import { Counter, Gauge, Histogram as PromHistogram, Registry } from "prom-client";
import type { Histogram } from "../base/histogram.ts";

/** A metric whose value is read when metrics are requested. */
export interface MetricReading {
	/** Names that end in `_total` are counters, which only grow during a process's life; all others are gauges. */
	readonly name: string;
	readonly help: string;
	/** Label names; undefined for a metric without labels. */
	readonly labels?: readonly string[];
	read(): ReadValue | Promise<ReadValue>;
}

export type ReadValue =
	| number
	| readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];

/** A histogram whose counts the measuring code keeps. */
export interface MetricHistogram {
	/** Ends in `_seconds` for times. */
	readonly name: string;
	readonly help: string;
	/** Unit of its bounds and sum; milliseconds are exported as seconds. */
	readonly unit: "ms" | "count";
	read(): Histogram;
}

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Builds GET /metrics in the Prometheus format, with `labels` on each series. Reads each value from the code that keeps
 * it.
 */
export function createMetrics(
	readings: readonly MetricReading[],
	histograms: readonly MetricHistogram[],
	labels: Readonly<Record<string, string>> = {},
) {
	const registry = new Registry();
	registry.setDefaultLabels({ ...labels });
	for (const reading of readings) register(registry, reading);
	for (const histogram of histograms) registry.registerMetric(new KeptHistogram(histogram));
	return { text: () => registry.metrics(), contentType: registry.contentType };
}

function register(registry: Registry, { name, help, labels, read }: MetricReading): void {
	const options = { name, help, labelNames: [...(labels ?? [])], registers: [registry] };
	const all = async () => {
		const now = await read();
		return typeof now === "number" ? [{ labels: {}, value: now }] : now;
	};
	const Kind = name.endsWith("_total") ? Counter : Gauge;
	const metric = new Kind({
		...options,
		async collect() {
			const now = await all();
			metric.reset();
			// `reset` was called before, so one `inc` sets the series to its value.
			for (const { labels, value } of now) metric.inc(labels, value);
		},
	});
}

class KeptHistogram extends PromHistogram {
	readonly #of: MetricHistogram;

	constructor(of: MetricHistogram) {
		super({ name: of.name, help: of.help, registers: [] });
		this.#of = of;
	}

	/** `prom-client` calls this to format the metric. */
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
		return { name, help, type: "histogram", values: [...buckets, value("sum", told(sum)), value("count", count)] };
	}
}
