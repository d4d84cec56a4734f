import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { deleteLostRequests, refundLostRequests } from "../batch/lost-requests.ts";
import { takeBackEndedPromotions } from "../billing/adjustments.ts";
import { scheduleAutoTopUpChecks } from "../billing/auto-top-ups.ts";
import type { CardPayments } from "../billing/card-payments.ts";
import {
	deleteOldAlertMarks,
	findAlerts,
	notifyAutoTopUps,
	notifyExpiringKeys,
	notifyRetiringModels,
} from "../console/alerts/alerts.ts";
import { recheckDomains } from "../console/company/company-store.ts";
import type { ConsoleFigures } from "../console/console-figures.ts";
import { deleteRefusals } from "../console/log/refused-log.ts";
import { deleteOldNotices, type NoticeDeps, sendNotices } from "../console/notices/notices.ts";
import { sampleService } from "../console/operator/revenue.ts";
import { deleteOldCounts } from "../console/rate-counter.ts";
import { deleteOldSessions, deleteUnverifiedPeople } from "../console/sign-in/auth-sign-up.ts";
import { closeJournals } from "../console/statement/journal.ts";
import { foldUsage, sumUsageByDay } from "../console/usage/usage-fold.ts";
import type { Statements } from "../db/statements.ts";
import { type Deployments, deleteOldReports } from "../deployments/deployments.ts";
import { forgetOldClaims } from "../gateway/idempotency/running.ts";
import { deleteOldShares } from "../keys/limit-shares.ts";
import { deleteOldManagementClaims } from "../keys/management-claim.ts";
import { archiveDays } from "../ledger/archive.ts";
import { openArchive } from "../ledger/archive-place.ts";
import { deleteOldBooksRuns } from "../ledger/reconciler.ts";
import { removeControl, removeLeases, removeUsage } from "../ledger/removal.ts";
import type { RetentionSettings } from "../ledger/retention.ts";
import { sealDays, verifyDays } from "../ledger/seals.ts";
import { deleteAuditBeyond, deleteOldAudit } from "../ops/audit.ts";

export interface JobDeps {
	/** Database clients. `sums` has a long deadline, because the first sums of a database read many rows. */
	readonly clients: { readonly statements: Statements; readonly sums: Statements };
	readonly clock: Clock;
	readonly log: Log;
	readonly deployments: Deployments;
	readonly cards: CardPayments | undefined;
	readonly retention: RetentionSettings;
	readonly notices: NoticeDeps;
	readonly figures: Pick<ConsoleFigures, "lostWork">;
}

const FOLD_MS = 2_000;
const SAMPLE_MS = 60_000;
const COLLECT_MS = 5_000;
/** Interval of automatic top-ups. A run costs three statements while no account changes. */
const TOP_UP_MS = 2_000;
/** Interval at which a job checks whether the daily comparison with Stripe is due; one statement each. */
const CLEAR_MS = 10 * 60_000;
/** Interval of the other jobs; one statement each while nothing changes. */
const LOOK_MS = 5_000;
const EXPIRING_MS = 10 * 60_000;
const RETIRING_MS = 30 * 60_000;
const NOTICE_MS = 5_000;
/** Interval of sealing; one statement while no day can be sealed. */
const SEAL_MS = 10_000;
const VERIFY_MS = 10_000;
/** Average number of sealed rows that are read and verified per second. */
const VERIFY_ROWS_PER_S = 500;
/** Interval of deletions; one statement while no row is old enough. */
const REMOVE_MS = 10_000;
const FORGET_MS = 10 * 60_000;
/** Days for which lease operations, and leases and epochs of ended instances, stay visible to operators. */
const LEASE_DAYS = 90;
/** Days for which control entries are kept. An instance that was away for longer must start a new epoch. */
const CONTROL_DAYS = 30;

export interface JobOptions {
	/** Factor that speeds up all jobs in tests. */
	readonly pace?: number;
	/** Set to 0 by tests that change sealed rows. */
	readonly verifyRowsPerS?: number;
}

/** Starts background jobs. Every console runs them, so several consoles may run the same job at the same time. */
export function startJobs(deps: JobDeps, { pace = 1, verifyRowsPerS = VERIFY_ROWS_PER_S }: JobOptions = {}) {
	const { clock, log, cards } = deps;
	const { statements, sums } = deps.clients;
	const cancels = new Set<() => void>();
	const running = new Set<Promise<void>>();
	const stopping = new AbortController();
	let stopped = false;

	function every(delayMs: number, name: string, run: () => Promise<unknown>): void {
		const cancel = clock.after(delayMs / pace, () => {
			cancels.delete(cancel);
			const work = run()
				.catch((error) => {
					if (stopped) log.debug("a background job ended with the stop", { job: name, error });
					else log.warn("a background job failed; it is tried again", { job: name, error });
				})
				.then(() => {
					running.delete(work);
					if (!stopped) every(delayMs, name, run);
				});
			running.add(work);
		});
		cancels.add(cancel);
	}

	every(FOLD_MS, "usage sums", () => foldUsage(sums));
	every(FORGET_MS, "sums by day", () => sumUsageByDay(sums));
	every(SAMPLE_MS, "loads of replicas", async () => sampleService(statements, await deps.deployments.current()));
	const books = { statements: sums, clock };
	every(SEAL_MS, "seals of days", () => sealDays(books));
	const verifyRows = (verifyRowsPerS * VERIFY_MS) / 1000;
	if (verifyRows > 0) every(VERIFY_MS, "verification of sealed days", () => verifyDays(books, verifyRows));
	every(FORGET_MS, "journals of months", () => closeJournals(sums));
	const { archive, usageDays, auditDays, refusalDays } = deps.retention;
	if (archive !== null) {
		const place = openArchive(archive, stopping.signal);
		const options = { own: true, signal: stopping.signal };
		every(FORGET_MS, "archive of sealed days", () => archiveDays(sums, place, options));
	}
	if (usageDays > 0) every(REMOVE_MS, "old requests", () => removeUsage(books, usageDays, archive !== null));
	every(REMOVE_MS, "old leases", () => removeLeases(books, LEASE_DAYS));
	every(FORGET_MS, "old entries of the control log", () => removeControl(books, CONTROL_DAYS));
	if (auditDays > 0) every(FORGET_MS, "old audit events", () => deleteOldAudit(statements, auditDays));
	every(FORGET_MS, "many audit events of an account", () => deleteAuditBeyond(statements));
	if (refusalDays > 0) every(FORGET_MS, "old refusals", () => deleteRefusals(statements, refusalDays));
	every(FORGET_MS, "proofs of companies' domains", () => recheckDomains(statements));
	every(FORGET_MS, "old rate counters", () => deleteOldCounts(statements));
	every(FORGET_MS, "unverified sign-ups", () => deleteUnverifiedPeople(statements, clock.wallMs()));
	every(FORGET_MS, "old sessions", () => deleteOldSessions(statements, clock.wallMs()));
	every(FORGET_MS, "old checks of the books", () => deleteOldBooksRuns(statements));
	every(LOOK_MS, "alerts of accounts", () => findAlerts(statements));
	every(EXPIRING_MS, "alerts of expiring keys", () => notifyExpiringKeys(statements));
	every(RETIRING_MS, "alerts of retiring models", async () =>
		notifyRetiringModels(statements, (await deps.deployments.current()).models, clock.wallMs()),
	);
	every(FORGET_MS, "old marks of alerts", () => deleteOldAlertMarks(statements));
	every(FORGET_MS, "old idempotency keys", () => forgetOldClaims(statements, clock.wallMs()));
	every(FORGET_MS, "old claims of the management interface", () =>
		deleteOldManagementClaims(statements, clock.wallMs()),
	);
	every(COLLECT_MS, "lost requests of batches", async () =>
		deps.figures.lostWork(await refundLostRequests(statements, log)),
	);
	every(COLLECT_MS, "ended promotional credit", () => takeBackEndedPromotions(statements));
	every(FORGET_MS, "old lost requests", () => deleteLostRequests(statements));
	every(FORGET_MS, "old shares", () => deleteOldShares(statements));
	every(FORGET_MS, "old reports", () => deleteOldReports(statements));
	for (const channel of ["webhook", "mail"] as const)
		every(NOTICE_MS, `notices by ${channel}`, () => sendNotices(deps.notices, channel, stopping.signal));
	every(FORGET_MS, "old notices", () => deleteOldNotices(statements));
	every(COLLECT_MS, "notices of automatic top-ups", () => notifyAutoTopUps(statements));
	if (cards === undefined) every(TOP_UP_MS, "automatic top-ups", () => scheduleAutoTopUpChecks(statements));
	else {
		every(COLLECT_MS, "refunds", () => cards.collect());
		every(TOP_UP_MS, "automatic top-ups", () => cards.topUpAutomatically());
		every(CLEAR_MS, "clearing", () => cards.clear());
	}

	return {
		/** Waits for the runs in progress; no further run starts. */
		async stop(): Promise<void> {
			stopped = true;
			stopping.abort();
			for (const cancel of cancels) cancel();
			await Promise.all(running);
			await cards?.ended();
		},
	};
}
