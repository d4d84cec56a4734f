import type { Cleanup } from "../base/cleanup.ts";
import type { Watch } from "../base/watch.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import { ledgerCountReadings, ledgerHistograms } from "../ledger/ledger-counts.ts";
import { lagReadings, startLoopLag } from "../ops/loop-lag.ts";
import { createMetrics, type Metrics } from "../ops/metrics.ts";
import { countCollections, processReadings } from "../ops/process-readings.ts";
import { type Refusals, refusalReadings } from "../ops/refusals.ts";
import { requestHistograms, requestReadings } from "../ops/request-readings.ts";
import type { RequestStats } from "../ops/request-stats.ts";
import { type ServiceState, serviceReadings } from "../ops/service-readings.ts";
import { ledgerTotals } from "./gateway-health.ts";
import type { BooksSeen } from "./gateway-watches.ts";

/** The metrics of a gateway's process. */
export function createGatewayMetrics(
	deps: Omit<ServiceState, "open" | "leaseLeftMs" | "ledger" | "booksOk" | "booksAgeMs"> & {
		readonly stats: RequestStats;
		readonly instanceLease: InstanceLease;
		readonly refusals: Refusals;
		readonly books: Pick<Watch<BooksSeen | undefined>, "last">;
		readonly cleanup: Cleanup;
	},
	labels: Readonly<Record<string, string>>,
): Metrics {
	const { stats, instanceLease, refusals, books } = deps;
	const { gate, counts } = instanceLease;
	const lag = startLoopLag();
	deps.cleanup.add(() => lag.stop());
	const state: ServiceState = {
		...deps,
		open: () => instanceLease.problem() === undefined,
		leaseLeftMs: () => gate.leftMs(),
		ledger: () => ledgerTotals(instanceLease),
		booksOk: () => books.last()?.ok,
		booksAgeMs: () => books.last()?.ageMs(),
	};
	return createMetrics(
		[
			...lagReadings(lag.read),
			...serviceReadings(state),
			...ledgerCountReadings(counts),
			...refusalReadings(refusals),
			...requestReadings(stats),
			...processReadings(countCollections()),
		],
		[...requestHistograms(stats), ...ledgerHistograms(counts)],
		labels,
	);
}
