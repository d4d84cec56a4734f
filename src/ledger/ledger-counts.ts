import type { Clock } from "../base/clock.ts";
import { createHistogram } from "../base/histogram.ts";
import type { MetricHistogram, MetricReading } from "../ops/metrics.ts";
import type { LedgerStore } from "./store.ts";

export type LedgerCounts = ReturnType<typeof createLedgerCounts>;

const SIZE_BOUNDS = [0, 1, 5, 10, 50, 100, 250, 500, 1_000];

/** Counts the ledger's statements in this process for its metrics, over all epochs. */
export function createLedgerCounts() {
	return {
		/** Grants that gave credit, and grants refused because the budget had too little. */
		granted: 0,
		refused: 0,
		grantedNanoUsd: 0,
		returnedNanoUsd: 0,
		writtenOffNanoUsd: 0,
		/** Budgets that this process recalled from other instances, and recalls of others that it answered. */
		recallsAsked: 0,
		recallsAnswered: 0,
		failedFlushes: 0,
		/** Epochs that ended because the database server changed, and settlements that the new server lacked. */
		epochsMoved: 0,
		sentAgain: 0,
		flushMs: createHistogram(),
		flushSize: createHistogram(SIZE_BOUNDS),
	};
}

/** Wraps a store so that statements are counted. One that skipped a locked row counts only when it is executed. */
export function countedStore(deps: { clock: Clock; counts: LedgerCounts }, store: LedgerStore): LedgerStore {
	const { clock, counts } = deps;
	return {
		...store,
		async grant(requests) {
			const replies = await store.grant(requests);
			for (const { amount, busy } of replies) {
				if (busy) continue;
				counts.grantedNanoUsd += amount;
				if (amount > 0) counts.granted += 1;
				else counts.refused += 1;
			}
			return replies;
		},
		async giveBack(requests) {
			const busy = await store.giveBack(requests);
			for (const { op, amount, recall } of requests) {
				if (busy.has(op)) continue;
				counts.returnedNanoUsd += amount;
				if (recall !== null) counts.recallsAnswered += 1;
			}
			return busy;
		},
		async flush(settled, openJson) {
			const startedMs = clock.monotonicMs();
			try {
				const flushed = await store.flush(settled, openJson);
				counts.flushSize.observe(flushed.fresh);
				return flushed;
			} catch (error) {
				counts.failedFlushes += 1;
				throw error;
			} finally {
				counts.flushMs.observe(clock.monotonicMs() - startedMs);
			}
		},
		async settleLate(eventJson) {
			const off = await store.settleLate(eventJson);
			counts.writtenOffNanoUsd += off ?? 0;
			return off;
		},
		async recall(budgets) {
			const ticket = await store.recall(budgets);
			counts.recallsAsked += budgets.length;
			return ticket;
		},
	};
}

/** Wraps a store so that `onNew` receives the number of settlements that the database did not have. */
export const reportNewSettlements = (store: LedgerStore, onNew: (count: number) => void): LedgerStore => ({
	...store,
	async flush(settled, openJson) {
		const flushed = await store.flush(settled, openJson);
		onNew(flushed.fresh);
		return flushed;
	},
	async settleLate(eventJson) {
		const off = await store.settleLate(eventJson);
		if (off !== undefined) onNew(1);
		return off;
	},
});

export function ledgerCountReadings(counts: LedgerCounts): MetricReading[] {
	return [
		{
			name: "tollgate_grants_total",
			help: "Requests for grants of credit that Postgres answered.",
			labels: ["answer"],
			read: () => [
				{ labels: { answer: "granted" }, value: counts.granted },
				{ labels: { answer: "refused" }, value: counts.refused },
			],
		},
		{
			name: "tollgate_granted_nano_usd_total",
			help: "Credit granted to slices of this process.",
			read: () => counts.grantedNanoUsd,
		},
		{
			name: "tollgate_returned_nano_usd_total",
			help: "Credit returned from slices of this process.",
			read: () => counts.returnedNanoUsd,
		},
		{
			name: "tollgate_recalls_total",
			help: "Budgets recalled from other instances, and recalls answered.",
			labels: ["side"],
			read: () => [
				{ labels: { side: "asked" }, value: counts.recallsAsked },
				{ labels: { side: "answered" }, value: counts.recallsAnswered },
			],
		},
		{
			name: "tollgate_epochs_moved_total",
			help: "Epochs of this process that ended because the database had another history.",
			read: () => counts.epochsMoved,
		},
		{
			name: "tollgate_settlements_sent_again_total",
			help: "Settlements that the database had acknowledged and lost.",
			read: () => counts.sentAgain,
		},
		{
			name: "tollgate_written_off_nano_usd_total",
			help: "Cost of late settlements that no credit covered.",
			read: () => counts.writtenOffNanoUsd,
		},
		{
			name: "tollgate_flush_failures_total",
			help: "Flushes of settlements that failed or were not answered.",
			read: () => counts.failedFlushes,
		},
	];
}

export function ledgerHistograms(counts: LedgerCounts): MetricHistogram[] {
	return [
		{
			name: "tollgate_flush_seconds",
			help: "Time until Postgres answered a flush of settlements.",
			unit: "ms",
			read: () => counts.flushMs,
		},
		{
			name: "tollgate_flush_settlements",
			help: "Settlements per flush that were new to Postgres.",
			unit: "count",
			read: () => counts.flushSize,
		},
	];
}
