import fs from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { MetricReading } from "./metrics.ts";

const QUANTILES = ["0.5", "0.99", "1"] as const;

/** Delay of the event loop in seconds, by quantile; "1" is the maximum. */
export type LoopLag = Readonly<Record<(typeof QUANTILES)[number], number>>;

/** Interval of the runtime's timer whose delay is measured; requests are not slowed down. */
const EVERY_MS = 20;

export function startLoopLag() {
	const histogram = monitorEventLoopDelay({ resolution: EVERY_MS });
	histogram.enable();
	return {
		/** Delay since the previous call of `read`. */
		read(): LoopLag {
			// Two reads in one event-loop turn return 0. Mean and minimum are omitted, because without samples they are
			// invalid.
			const lag = {
				"0.5": histogram.percentile(50) / 1e9,
				"0.99": histogram.percentile(99) / 1e9,
				"1": histogram.max / 1e9,
			};
			histogram.reset();
			return lag;
		},
		stop: () => void histogram.disable(),
	};
}

export function lagReadings(own: () => LoopLag, name: string): MetricReading[] {
	return [
		{
			name,
			help: "Event-loop delay since the last scrape; quantile 1 is the maximum.",
			labels: ["quantile"],
			read() {
				const lag = own();
				return QUANTILES.map((quantile) => ({ labels: { quantile }, value: lag[quantile] }));
			},
		},
	];
}

const OPEN_FILES = "/proc/self/fd";

export function processReadings(collections: () => number): MetricReading[] {
	return [
		{ name: "process_resident_memory_bytes", help: "Resident memory.", read: () => residentBytes() ?? [] },
		{
			name: "process_heap_bytes",
			help: "Memory of the JavaScript heap.",
			read: () => unlessUnreadable(() => process.memoryUsage().heapUsed) ?? [],
		},
		{
			name: "process_heap_collections_total",
			help: "Observed garbage collections. Their pauses are part of the event-loop lag.",
			read: collections,
		},
		{
			name: "process_open_fds",
			help: "Open files and connections. Linux only.",
			read: async () => {
				try {
					return (await fs.readdir(OPEN_FILES)).length;
				} catch {
					return [];
				}
			},
		},
		{
			name: "process_cpu_seconds_total",
			help: "User and system time.",
			read: () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
		},
	];
}

export function residentBytes(): number | undefined {
	return unlessUnreadable(() => process.memoryUsage.rss());
}

/** The runtime reads a system file, which fails if no file descriptor is free. */
function unlessUnreadable(read: () => number): number | undefined {
	try {
		return read();
	} catch {
		return undefined;
	}
}

/** Counts garbage collections: registers an unreachable object, and another one whenever the last was collected. */
export function countCollections(): () => number {
	let seen = 0;
	const registry = new FinalizationRegistry<undefined>(() => {
		seen += 1;
		watch();
	});
	function watch(): void {
		registry.register({}, undefined);
	}
	watch();
	return () => seen;
}
