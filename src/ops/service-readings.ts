import type { Reading } from "./metrics.ts";
import type { ReplicaState } from "./replica-readings.ts";
import { replicaReadings } from "./replica-readings.ts";

/** What the parts of the service say of themselves, as numbers. */
export interface ServiceState {
	open(): boolean;
	leaseLeftMs(): number;
	ledger(): LedgerState | undefined;
	/** Requests that are being answered or whose answers go out, of all kinds. */
	openRequests(): number;
	openStreams(): number;
	waitingForReplica(): number;
	keyring(): { keys: number; unknown: number; accounts: number; loading: number };
	replicas(): readonly ReplicaState[];
	/** Undefined before the first check. */
	booksOk(): boolean | undefined;
	booksAgeMs(): number | undefined;
	/** Undefined before the first look. */
	paymentFindings(): number | undefined;
	/** Undefined before the first look. */
	settlementsRefused(): number | undefined;
	batchesRefused(): number;
}

export interface LedgerState {
	readonly running: number;
	readonly queued: number;
	readonly oldestUnflushedMs: number;
	readonly free: number;
	readonly held: number;
	readonly unacknowledged: number;
	readonly journal: { readonly segments: number; readonly bytes: number };
}

export function serviceReadings(state: ServiceState): Reading[] {
	const ledger = (pick: (view: LedgerState) => number) => () => {
		const view = state.ledger();
		return view ? pick(view) : 0;
	};
	return [
		{ name: "tollgate_admitting", help: "1 while this instance may admit requests.", read: () => Number(state.open()) },
		{
			name: "tollgate_lease_left_seconds",
			help: "How long this instance may admit without another heartbeat; 0 while it may not.",
			read: () => state.leaseLeftMs() / 1_000,
		},
		{
			name: "tollgate_requests_running",
			help: "Admitted requests that are not settled.",
			read: ledger((view) => view.running),
		},
		{
			name: "tollgate_settlements_queued",
			help: "Settlements that Postgres does not have yet.",
			read: ledger((view) => view.queued),
		},
		{
			name: "tollgate_oldest_unflushed_seconds",
			help: "Age of the oldest of them.",
			read: ledger((view) => view.oldestUnflushedMs / 1_000),
		},
		{
			name: "tollgate_journal_bytes",
			help: "The journal's length: what is open or not yet in Postgres, and what lies between.",
			read: ledger(({ journal }) => journal.bytes),
		},
		{
			name: "tollgate_journal_segments",
			help: "Its files.",
			read: ledger(({ journal }) => journal.segments),
		},
		{
			name: "tollgate_credit_free_nano_usd",
			help: "Credit in this instance's slices that is free.",
			read: ledger((view) => view.free),
		},
		{
			name: "tollgate_credit_held_nano_usd",
			help: "Credit that running requests hold.",
			read: ledger((view) => view.held),
		},
		{
			name: "tollgate_credit_unacknowledged_nano_usd",
			help: "Charges that Postgres does not have yet.",
			read: ledger((view) => view.unacknowledged),
		},
		{
			name: "tollgate_requests_open",
			help: "Requests of all kinds that were begun and not ended, towards clients.",
			read: () => state.openRequests(),
		},
		{ name: "tollgate_streams_open", help: "Streams open towards clients.", read: () => state.openStreams() },
		{
			name: "tollgate_requests_waiting",
			help: "Admitted requests that wait for a replica.",
			read: () => state.waitingForReplica(),
		},
		{ name: "tollgate_keys_cached", help: "Keys in memory.", read: () => state.keyring().keys },
		{ name: "tollgate_unknown_keys_cached", help: "Digests known to be no key.", read: () => state.keyring().unknown },
		...replicaReadings(() => state.replicas()),
		{
			name: "tollgate_books_ok",
			help: "1 if the last check of the books found nothing, -1 before the first.",
			read: () => {
				const ok = state.booksOk();
				return ok === undefined ? -1 : Number(ok);
			},
		},
		{
			name: "tollgate_books_age_seconds",
			help: "Since the last check of the books, -1 before the first.",
			read: () => {
				const ageMs = state.booksAgeMs();
				return ageMs === undefined ? -1 : ageMs / 1_000;
			},
		},
		{
			name: "tollgate_payment_findings_open",
			help: "Card payments that the books and Stripe do not agree about, -1 before the first look.",
			read: () => state.paymentFindings() ?? -1,
		},
		{
			name: "tollgate_settlements_refused",
			help: "Settlements of the last day that came when requests of their time were removed, -1 before the first look.",
			read: () => state.settlementsRefused() ?? -1,
		},
		{
			name: "tollgate_batches_refused",
			help: "Batches that run here and wait because Postgres refuses what became of their lines.",
			read: () => state.batchesRefused(),
		},
	];
}
