import type { Cleanup } from "../base/cleanup.ts";
import type { ConsoleFigures } from "../console/console-figures.ts";
import { lagReadings, startLoopLag } from "../ops/loop-lag.ts";
import { createMetrics, type Metrics } from "../ops/metrics.ts";
import { countCollections, processReadings } from "../ops/process-readings.ts";

/** The metrics of a console's process. */
export function createConsoleMetrics(
	deps: { readonly figures: ConsoleFigures; readonly cleanup: Cleanup },
	labels: Readonly<Record<string, string>>,
): Metrics {
	const { figures } = deps;
	const lag = startLoopLag();
	deps.cleanup.add(() => lag.stop());
	return createMetrics(
		[
			...lagReadings(lag.read, "tollgate_console_event_loop_lag_seconds"),
			...processReadings(countCollections()),
			...figures.readings(),
		],
		figures.histograms(),
		labels,
	);
}
