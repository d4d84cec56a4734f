import type { MetricReading } from "./metrics.ts";

export interface ReplicaState {
	readonly alias: string;
	readonly modelId: string;
	readonly health: string;
	readonly breaker: string;
	readonly inFlight: number;
	readonly maxConcurrency: number;
	readonly refused: number;
	readonly contradictions: number;
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly waitMs: number;
}

/** Maximum replicas with own series. A model has series for all of its replicas or for none, so sums are correct. */
const REPLICAS_MAX = 1_000;

const isUp = ({ health }: ReplicaState) => health !== "down";
const isOpen = ({ breaker }: ReplicaState) => breaker !== "closed";
const isWell = (replica: ReplicaState) => isUp(replica) && !isOpen(replica);

/** The state of each replica as readings. If there are too many replicas, models with problems come first. */
export function replicaReadings(replicas: () => readonly ReplicaState[]): MetricReading[] {
	const gauge = (name: string, help: string, pick: (replica: ReplicaState) => number): MetricReading => ({
		name: `tollgate_replica_${name}`,
		help,
		labels: ["replica", "model"],
		read: () =>
			shown(replicas()).map((replica) => ({
				labels: { replica: replica.alias, model: replica.modelId },
				value: pick(replica),
			})),
	});
	return [
		gauge("up", "1 unless the replica is known to be down.", (replica) => Number(isUp(replica))),
		gauge("breaker_open", "1 while the breaker is open.", (replica) => Number(isOpen(replica))),
		gauge("places", "Concurrent calls that the replica accepts.", ({ maxConcurrency }) => maxConcurrency),
		gauge("in_flight", "Calls under way.", ({ inFlight }) => inFlight),
		gauge("refusals_total", "Calls refused because of our key, credit or model name.", ({ refused }) => refused),
		gauge(
			"usage_contradictions_total",
			"Answers whose token counts do not add up.",
			(replica) => replica.contradictions,
		),
		gauge("prompt_tokens_total", "Prompt tokens that the replica reported.", ({ promptTokens }) => promptTokens),
		gauge("cached_tokens_total", "Prompt tokens from the replica's cache.", ({ cachedTokens }) => cachedTokens),
		gauge("wait_seconds", "Estimated time until it starts another prompt.", ({ waitMs }) => waitMs / 1_000),
		{
			name: "tollgate_replicas",
			help: "Replicas of all models by state; replicas with an open breaker are also counted as up.",
			labels: ["state"],
			read: () => {
				const all = replicas();
				const up = all.filter(isUp);
				return [
					{ labels: { state: "up" }, value: up.length },
					{ labels: { state: "down" }, value: all.length - up.length },
					{ labels: { state: "breaker_open" }, value: up.filter(isOpen).length },
				];
			},
		},
	];
}

/** Chooses whole models up to the limit of replicas, those with problems first. */
function shown(replicas: readonly ReplicaState[]): readonly ReplicaState[] {
	if (replicas.length <= REPLICAS_MAX) return replicas;
	const models = [...Map.groupBy(replicas, ({ modelId }) => modelId).values()];
	const chosen: ReplicaState[] = [];
	const inOrder = [...models.filter((model) => !model.every(isWell)), ...models.filter((model) => model.every(isWell))];
	for (const model of inOrder) if (chosen.length + model.length <= REPLICAS_MAX) chosen.push(...model);
	return chosen;
}

export interface ServiceFigures {
	open(): boolean;
	leaseLeftMs(): number;
	ledger(): LedgerState | undefined;
	/** Requests of all kinds that are running, or whose responses are being sent. */
	openRequests(): number;
	openStreams(): number;
	waitingForReplica(): number;
	keyring(): { keys: number; unknown: number; accounts: number; loading: number };
	replicas(): readonly ReplicaState[];
	/** Undefined before the first check of the books. */
	booksOk(): boolean | undefined;
	booksAgeMs(): number | undefined;
	/** Undefined before the first check for findings. */
	paymentFindings(): number | undefined;
	/** Undefined before the first check for refused settlements. */
	settlementsRefused(): number | undefined;
	/** Undefined before the first check for lost acts. */
	actsLost(): number | undefined;
	batchesRefused(): number;
	diskReserves(): number;
}

/** Figures of the ledger; amounts are in nano-dollars. */
export type LedgerState = Readonly<
	Record<
		"running" | "queued" | "oldestUnflushedS" | "journalBytes" | "journalSegments" | "free" | "held" | "unacknowledged",
		number
	>
>;

export function serviceReadings(state: ServiceFigures): MetricReading[] {
	const ledger = (figure: keyof LedgerState) => () => state.ledger()?.[figure] ?? 0;
	const gauge = (name: string, help: string, read: () => number): MetricReading => ({ name, help, read });
	return [
		gauge("tollgate_admitting", "1 while this instance may admit requests.", () => Number(state.open())),
		gauge(
			"tollgate_lease_left_seconds",
			"Time that this instance may admit requests without another heartbeat; 0 if it may not.",
			() => state.leaseLeftMs() / 1_000,
		),
		gauge("tollgate_requests_running", "Admitted requests that are not settled.", ledger("running")),
		gauge("tollgate_settlements_queued", "Settlements that are not in Postgres yet.", ledger("queued")),
		gauge(
			"tollgate_oldest_unflushed_seconds",
			"Age of the oldest settlement that is not in Postgres yet.",
			ledger("oldestUnflushedS"),
		),
		gauge("tollgate_journal_bytes", "Size of the journal.", ledger("journalBytes")),
		gauge("tollgate_journal_segments", "Files of the journal.", ledger("journalSegments")),
		gauge("tollgate_credit_free_nano_usd", "Free credit in the slices of this instance.", ledger("free")),
		gauge("tollgate_credit_held_nano_usd", "Credit that running requests hold.", ledger("held")),
		gauge("tollgate_credit_unacknowledged_nano_usd", "Charges that are not in Postgres yet.", ledger("unacknowledged")),
		gauge("tollgate_requests_open", "Open requests of clients, of all kinds.", () => state.openRequests()),
		gauge("tollgate_streams_open", "Open streams to clients.", () => state.openStreams()),
		gauge("tollgate_requests_waiting", "Admitted requests that wait for a replica.", () => state.waitingForReplica()),
		gauge("tollgate_keys_cached", "Keys in memory.", () => state.keyring().keys),
		gauge("tollgate_unknown_keys_cached", "Unknown key digests in memory.", () => state.keyring().unknown),
		...replicaReadings(() => state.replicas()),
		gauge("tollgate_books_ok", "1 if the last check of the books found no problem, -1 before the first check.", () =>
			Number(state.booksOk() ?? -1),
		),
		gauge(
			"tollgate_books_age_seconds",
			"Time since the last check of the books, -1 before the first check.",
			() => (state.booksAgeMs() ?? -1_000) / 1_000,
		),
		gauge(
			"tollgate_payment_findings_open",
			"Card payments on which the books and Stripe differ, -1 before the first check.",
			() => state.paymentFindings() ?? -1,
		),
		gauge(
			"tollgate_settlements_refused",
			"Settlements of the last day that arrived after RETENTION_USAGE_DAYS, -1 before the first check.",
			() => state.settlementsRefused() ?? -1,
		),
		gauge(
			"tollgate_acts_lost",
			"Acts of the last day that the database lost in a failover and an operator has to repeat, -1 before the first check.",
			() => state.actsLost() ?? -1,
		),
		gauge(
			"tollgate_batches_refused",
			"Batches of this instance that are paused because Postgres refuses their outcomes.",
			() => state.batchesRefused(),
		),
		gauge(
			"tollgate_disk_reserves",
			"Free space on the disk of DATA_DIR; at 1, the reserve of journal and Postgres, uploads stop.",
			() => state.diskReserves(),
		),
	];
}
