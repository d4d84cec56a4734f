import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Reading } from "./metrics.ts";

const QUANTILES = ["0.5", "0.99", "1"] as const;

/** How late the event loop was, in seconds; 1 is the longest. */
export type LoopLag = Readonly<Record<(typeof QUANTILES)[number], number>>;

/** The runtime's own timer, which is late by what holds the loop up; requests do nothing for it. */
const EVERY_MS = 20;

export interface LoopLagMeter {
	/** Since it was last asked. */
	read(): LoopLag;
	stop(): void;
}

export function startLoopLag(): LoopLagMeter {
	const histogram = monitorEventLoopDelay({ resolution: EVERY_MS });
	histogram.enable();
	return {
		read() {
			// Asked twice within a turn these are 0; its mean and its least would be no numbers to show.
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

/** `name`: a console's lag has another one, so that who scales gateways by theirs need not leave it out. */
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
