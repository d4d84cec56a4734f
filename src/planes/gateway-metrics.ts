import type { Cleanup } from "../base/cleanup.ts";
import { newRequestId } from "../base/id.ts";
import type { LogFields } from "../base/log.ts";
import type { Watch } from "../base/watch.ts";
import type { SettledEvent } from "../ledger/event.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import { ledgerCountReadings, ledgerHistograms } from "../ledger/ledger-counts.ts";
import type { Metrics } from "../ops/metrics.ts";
import { type Refusals, refusalReadings } from "../ops/refusals.ts";
import { type RequestStats, requestHistograms, requestReadings } from "../ops/request-stats.ts";
import { type ServiceFigures, serviceReadings } from "../ops/service-readings.ts";
import { type BooksCheck, ledgerTotals } from "./gateway-health.ts";
import { createProcessMetrics } from "./process-metrics.ts";

export function createGatewayMetrics(
	deps: Omit<ServiceFigures, "open" | "leaseLeftMs" | "ledger" | "booksOk" | "booksAgeMs"> & {
		readonly stats: RequestStats;
		readonly instanceLease: InstanceLease;
		readonly refusals: Refusals;
		readonly books: Pick<Watch<BooksCheck | undefined>, "last">;
		readonly cleanup: Cleanup;
	},
	labels: Readonly<Record<string, string>>,
): Metrics {
	const { stats, instanceLease, refusals, books } = deps;
	const { gate, counts } = instanceLease;
	const state: ServiceFigures = {
		...deps,
		open: () => instanceLease.problem() === undefined,
		leaseLeftMs: () => gate.leftMs(),
		ledger: () => ledgerTotals(instanceLease),
		booksOk: () => books.last()?.ok,
		booksAgeMs: () => books.last()?.ageMs(),
	};
	return createProcessMetrics(
		deps,
		{
			readings: [
				...serviceReadings(state),
				...ledgerCountReadings(counts),
				...refusalReadings(refusals),
				...requestReadings(stats),
			],
			histograms: [...requestHistograms(stats), ...ledgerHistograms(counts)],
			lagName: "process_event_loop_lag_seconds",
		},
		labels,
	);
}

/** Log fields of a settlement, to investigate a customer's problem. They contain neither prompt nor answer. */
export function settledFields(event: SettledEvent): LogFields {
	const { account, key, model, endpoint, ending, status, promptTokens, completionTokens, ms, replica } = event;
	return {
		request: newRequestId(event.id).requestId,
		account,
		key,
		model,
		endpoint,
		ending,
		status,
		promptTokens,
		completionTokens,
		chargedNanoUsd: event.charged,
		firstMs: event.first,
		ms,
		replica,
	};
}
