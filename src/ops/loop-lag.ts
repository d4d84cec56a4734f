import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Reading } from "./metrics.ts";

const QUANTILES = ["0.5", "0.99", "1"] as const;

/** Event-loop delay in seconds by quantile; "1" is the maximum. */
export type LoopLag = Readonly<Record<(typeof QUANTILES)[number], number>>;

/** Interval of the runtime's own timer, whose delay is measured; requests cost nothing extra. */
const EVERY_MS = 20;

export interface LoopLagMeter {
	/** The delay since the previous call. */
	read(): LoopLag;
	stop(): void;
}

export function startLoopLag(): LoopLagMeter {
	const histogram = monitorEventLoopDelay({ resolution: EVERY_MS });
	histogram.enable();
	return {
		read() {
			// Two reads in one turn return 0. Mean and minimum are not exported: an empty interval has no valid ones.
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

/** `name`: a console uses another name, so that autoscaling of gateways need not filter it out. */
export function lagReadings(own: () => LoopLag, name = "process_event_loop_lag_seconds"): Reading[] {
	return [
		{
			name,
			help: "How late the event loop was since the last question; quantile 1 is the longest.",
			labels: ["quantile"],
			read() {
				const lag = own();
				return QUANTILES.map((quantile) => ({ labels: { quantile }, value: lag[quantile] }));
			},
		},
	];
}
