import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import { newRequestId } from "../base/id.ts";
import type { Log, LogFields } from "../base/log.ts";
import { startWatch, type Watch } from "../base/watch.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { type LostAct, lostActsProblem, readLostActs } from "../cluster/lost-acts.ts";
import { type DurabilityWatch, readDurability, startDurabilityWatch } from "../db/durability.ts";
import { poolerProblem } from "../db/new-client.ts";
import type { Statements } from "../db/statements.ts";
import type { DiskRoom } from "../files/disk-room.ts";
import type { SettledEvent } from "../ledger/event.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import { ledgerCountReadings, ledgerHistograms } from "../ledger/ledger-counts.ts";
import { lastBooksCheck } from "../ledger/reconciler.ts";
import { countRefusedSettlements } from "../ledger/removal.ts";
import { createHealth, type HealthReport, STOPPING_REASON } from "../ops/health.ts";
import type { Metrics } from "../ops/metrics.ts";
import { countOpenFindings, PAYMENTS_DIFFER } from "../ops/payment-findings.ts";
import { type Refusals, refusalReadings } from "../ops/refusals.ts";
import { type RequestStats, requestHistograms, requestReadings } from "../ops/request-stats.ts";
import { type ServiceFigures, serviceReadings } from "../ops/service-readings.ts";
import type { ConsoleProxy } from "./console-proxy.ts";
import { createProcessMetrics } from "./process-metrics.ts";

/** Result of the latest check of the books. */
export interface BooksCheck {
	readonly ok: boolean;
	/** Age of the result: by Postgres's clock when it was read, by this process's clock since then. */
	ageMs(): number;
}

const FIRST_COUNT_MS = 1_000;
const FIRST_LOOK_AT_BOOKS_MS = 5_000;
/** No immediate check, because the start has already checked the sessions. */
const FIRST_LOOK_AT_SESSIONS_MS = 60_000;

/** Reads values from Postgres periodically, for a gateway's metrics and health. */
export function startGatewayWatches(deps: {
	statements: Statements;
	url: string;
	clock: Clock;
	log: Log;
	cleanup: Cleanup;
}) {
	const { statements, clock, log, cleanup } = deps;
	const durability = startDurabilityWatch({ read: () => readDurability(statements), clock, log });
	cleanup.add(() => durability.stop());
	function watch<T>(what: string, firstLookMs: number, look: () => Promise<T>) {
		const watching = startWatch({ look, clock, log }, { what, firstLookMs });
		cleanup.add(() => watching.stop());
		return watching;
	}
	// Only a console checks the books; a gateway reads the result from Postgres.
	const books = watch("the books", FIRST_LOOK_AT_BOOKS_MS, async (): Promise<BooksCheck | undefined> => {
		const check = await lastBooksCheck(statements);
		if (check === undefined) return undefined;
		const checkedMs = clock.monotonicMs() - check.ageMs;
		return { ok: check.ok, ageMs: () => clock.monotonicMs() - checkedMs };
	});
	const payments = watch("payments in question", FIRST_COUNT_MS, () => countOpenFindings(statements));
	const refused = watch("refused settlements", FIRST_COUNT_MS, () => countRefusedSettlements(statements));
	const lostActs = watch("lost acts", FIRST_COUNT_MS, () => readLostActs(statements));
	const pooled = watch("sessions of the database", FIRST_LOOK_AT_SESSIONS_MS, () => poolerProblem(deps.url));
	return { books, durability, payments, refused, lostActs, pooled };
}

/** Settlements are sent every 0.1 s. If one has this age, Postgres counts as refusing it. */
const UNFLUSHED_WARNING_MS = 5_000;
/** A console checks the books every 15 minutes. If the last check has this age, no console counts as running. */
const BOOKS_OLD_MS = 60 * 60_000;

/** A gateway is ready if it may admit requests. A missing console causes only a warning. */
export function createGatewayHealth(deps: {
	stopping(): boolean;
	instanceLease: InstanceLease;
	catalog: Catalog;
	books: Pick<Watch<BooksCheck | undefined>, "last">;
	payments: Pick<Watch<number>, "last">;
	durability: Pick<DurabilityWatch, "problem">;
	lostActs: Pick<Watch<readonly LostAct[]>, "last">;
	pooled: Pick<Watch<string | undefined>, "last">;
	room: Pick<DiskRoom, "problem">;
	console: Pick<ConsoleProxy, "problem">;
}): () => HealthReport {
	const { instanceLease, catalog, books, payments } = deps;
	const booksAreOld = () => (books.last()?.ageMs() ?? 0) > BOOKS_OLD_MS;
	return createHealth({
		ready: [
			() => (deps.stopping() ? STOPPING_REASON : undefined),
			() => instanceLease.problem(),
			() => (catalog.current().revision === 0 ? "the catalogue is not loaded" : undefined),
		],
		warn: [
			() => (catalog.problems().length > 0 ? "the newest catalogue file has problems: see the log" : undefined),
			() => (books.last()?.ok === false ? "the books are broken: run `tollgate ledger reconcile`" : undefined),
			() => (booksAreOld() ? "the books were not checked for an hour: no console is running" : undefined),
			() => ((payments.last() ?? 0) > 0 ? PAYMENTS_DIFFER : undefined),
			deps.durability.problem,
			() => lostActsProblem(deps.lostActs.last() ?? []),
			deps.pooled.last,
			() => settlementsLate(instanceLease),
			deps.room.problem,
			deps.console.problem,
		],
	});
}

function settlementsLate(instanceLease: InstanceLease): string | undefined {
	const ageMs = instanceLease.present()?.view().oldestUnflushedMs ?? 0;
	return ageMs > UNFLUSHED_WARNING_MS
		? `settlements have waited ${Math.round(ageMs / 1000)} s for the database`
		: undefined;
}

function ledgerTotals(instanceLease: InstanceLease) {
	const view = instanceLease.present()?.view();
	if (!view) return undefined;
	const { running, queued, oldestUnflushedMs, journal, totals } = view;
	const { bytes: journalBytes, segments: journalSegments } = journal;
	return { running, queued, oldestUnflushedS: oldestUnflushedMs / 1_000, journalBytes, journalSegments, ...totals };
}

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
