import type { Reading } from "./metrics.ts";

/** What the parts of the service say of themselves, as numbers. */
export interface ServiceState {
	open(): boolean;
	ledger():
		| { running: number; queued: number; oldestUnflushedMs: number; free: number; held: number; unacknowledged: number }
		| undefined;
	openStreams(): number;
	waitingForReplica(): number;
	keyring(): { keys: number; unknown: number; accounts: number; loading: number };
	replicas(): readonly {
		alias: string;
		modelId: string;
		health: string;
		breaker: string;
		inFlight: number;
		maxConcurrency: number;
	}[];
	/** Undefined before the first check. */
	booksOk(): boolean | undefined;
	/** Undefined before the first look. */
	paymentFindings(): number | undefined;
}

export function serviceReadings(state: ServiceState): Reading[] {
	const ledger = (pick: (view: NonNullable<ReturnType<ServiceState["ledger"]>>) => number) => () => {
		const view = state.ledger();
		return view ? pick(view) : 0;
	};
	const replica = (pick: (view: ReturnType<ServiceState["replicas"]>[number]) => number) => () =>
		state.replicas().map((view) => ({ labels: { replica: view.alias, model: view.modelId }, value: pick(view) }));
	const labels = ["replica", "model"];
	return [
		{ name: "tollgate_admitting", help: "1 while this instance may admit requests.", read: () => Number(state.open()) },
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
		{ name: "tollgate_streams_open", help: "Streams open towards clients.", read: () => state.openStreams() },
		{
			name: "tollgate_requests_waiting",
			help: "Admitted requests that wait for a replica.",
			read: () => state.waitingForReplica(),
		},
		{ name: "tollgate_keys_cached", help: "Keys in memory.", read: () => state.keyring().keys },
		{ name: "tollgate_unknown_keys_cached", help: "Digests known to be no key.", read: () => state.keyring().unknown },
		{
			name: "tollgate_replica_up",
			help: "1 unless the replica is known to be down.",
			labels,
			read: replica((view) => Number(view.health !== "down")),
		},
		{
			name: "tollgate_replica_breaker_open",
			help: "1 while the breaker keeps traffic away.",
			labels,
			read: replica((view) => Number(view.breaker !== "closed")),
		},
		{
			name: "tollgate_replica_places",
			help: "Calls that the replica takes at once.",
			labels,
			read: replica((view) => view.maxConcurrency),
		},
		{ name: "tollgate_replica_in_flight", help: "Calls under way.", labels, read: replica((view) => view.inFlight) },
		{
			name: "tollgate_books_ok",
			help: "1 if the last check of the books found nothing, -1 before the first.",
			read: () => {
				const ok = state.booksOk();
				return ok === undefined ? -1 : Number(ok);
			},
		},
		{
			name: "tollgate_payment_findings_open",
			help: "Card payments that the books and Stripe do not agree about, -1 before the first look.",
			read: () => state.paymentFindings() ?? -1,
		},
	];
}
