import type { PgBoss } from "pg-boss";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Database } from "../db/database.ts";
import { type RunDeps, runBatch } from "./run-batch.ts";

const QUEUE = "batch";
const SCHEMA = "batch_jobs";
/** Maximum number of concurrent batches: per instance, and per account on one instance. */
const RUNS_MAX = 4;
const RUNS_ACCOUNT_MAX = 2;
/** After this many seconds without a heartbeat another instance runs the batch. Shorter database outages end no run. */
const HEARTBEAT_S = 30;
const POLL_S = 2;
/** Seconds between searches for batches that no instance runs. */
const SUPERVISE_S = 5;
const RETRY_S = 2;
/** More retries than any batch needs within its time limit. */
const RETRIES_MAX = 1_000_000;
const EXPIRE_S = 24 * 3600;
const SWEEP_MS = 60_000;
const SWEPT_MAX = 1_000;
const CONNECTIONS_MAX = 2;
const STOP_MS = 8_000;
const STATEMENT_MS_MAX = 20_000;

/**
 * Runs this instance's share of the open batches. The queue (pg-boss in the same Postgres, loaded at the first start)
 * has a job per batch, and gives the job to another instance when heartbeats stop. The queue only chooses the instance;
 * `batch_claim` decides which lines are sent.
 */
export function createBatchRunner(deps: Omit<RunDeps, "othersWait">, database: Pick<Database, "url" | "history">) {
	const { books, clock, log } = deps;
	let boss: PgBoss | undefined;
	let closeQueue = async () => {};
	let worker: string | undefined;
	let starting: Promise<void> | undefined;
	let cancelSweep: () => void = () => {};
	const stopping = new AbortController();
	const running = new Set<Promise<void>>();

	async function begin(): Promise<void> {
		const { made, close } = await openQueue(deps, database);
		try {
			worker = await made.work<{ id: string }>(
				QUEUE,
				{
					batchSize: 1,
					localConcurrency: RUNS_MAX,
					localGroupConcurrency: RUNS_ACCOUNT_MAX,
					pollingIntervalSeconds: POLL_S,
				},
				async ([job]) => {
					if (job !== undefined) await run(job.data.id, AbortSignal.any([stopping.signal, job.signal]));
				},
			);
		} catch (error) {
			// Closes this queue, because the next attempt opens a new one.
			await close();
			throw error;
		}
		boss = made;
		closeQueue = close;
		await sweep();
	}

	async function run(id: string, signal: AbortSignal): Promise<void> {
		// A batch whose rows Postgres refuses does not yield to waiting batches.
		const othersWait = async () => !deps.refused.has(id) && (await waiting()) > 0;
		const mine = runBatch({ ...deps, othersWait }, id, signal);
		running.add(mine);
		try {
			await mine;
		} catch (error) {
			if (!signal.aborted) log.warn("a run of a batch ended early; another one follows", { batch: id, error });
			throw error;
		} finally {
			running.delete(mine);
		}
	}

	/** Number of waiting jobs, which the queue caches for some seconds. */
	async function waiting(): Promise<number> {
		const counted = await boss?.getQueueStats(QUEUE);
		return counted?.at(-1)?.readyCount ?? 0;
	}

	/** Queues every open batch without a job: creating it failed, the batch yielded, or the job ended by mistake. */
	async function sweep(): Promise<void> {
		// A start that was in progress when the instance stopped also reaches this line.
		if (stopping.signal.aborted) return;
		cancelSweep = clock.after(SWEEP_MS, () => void sweep());
		try {
			// Reads all pages, because the first page may contain only long-running batches.
			for (let after: string | undefined = ""; after !== undefined; ) {
				const open: { id: string; accountId: string }[] = await books.open(after, SWEPT_MAX);
				for (const batch of open) await send(batch);
				after = open.at(-1)?.id;
			}
			while (await books.dropLines());
		} catch (error) {
			log.info("open batches could not be read; trying again", { error });
		}
	}

	/** Queues a batch. Does nothing if the batch is already queued or running. */
	async function send({ id, accountId }: { id: string; accountId: string }): Promise<void> {
		await boss?.send(QUEUE, { id }, { singletonKey: id, group: { id: accountId } });
	}

	/** Starts running batches; resolves once it has started. May be called repeatedly. */
	function start(): Promise<void> {
		if (stopping.signal.aborted) return starting ?? Promise.resolve();
		starting ??= begin().catch((error) => {
			log.error("the queue of batches could not be started; trying again", { error });
			starting = undefined;
			if (!stopping.signal.aborted) cancelSweep = clock.after(SWEEP_MS, () => void start());
		});
		return starting;
	}

	return {
		start,
		/** Queues a batch, which any instance may then run. */
		async wake(batch: { readonly id: string; readonly accountId: string }): Promise<void> {
			await start();
			try {
				await send(batch);
				if (worker !== undefined) boss?.notifyWorker(worker);
			} catch (error) {
				log.info("a batch could not be queued; the next sweep queues it", { batch: batch.id, error });
			}
		},
		/** Starts no further batches. Returns running batches to the queue within `RunDeps.graceMs`. */
		async stop(): Promise<void> {
			cancelSweep();
			stopping.abort();
			await starting;
			await Promise.allSettled(running);
			await boss?.stop({ graceful: true, timeout: STOP_MS });
			await closeQueue();
		},
	};
}

/** The queue uses this service's Postgres client, which supports several hosts, poolers and deadlines. */
async function openQueue(deps: { clock: Clock; log: Log }, { url, history }: Pick<Database, "url" | "history">) {
	const { log } = deps;
	// Imported here, because a gateway without batches needs none of these packages.
	const [{ PgBoss: Boss, fromDrizzle }, { sql }, { createTransactional }] = await Promise.all([
		import("pg-boss"),
		import("drizzle-orm"),
		import("../db/transactional.ts"),
	]);
	const { tx, end } = createTransactional(deps, {
		...{ url, history, applicationName: "tollgate batches", connectionsMax: CONNECTIONS_MAX },
		...{ statementDeadlineMs: STATEMENT_MS_MAX, transactionDeadlineMs: STATEMENT_MS_MAX },
	});
	const made = new Boss({
		db: fromDrizzle(tx, sql),
		schema: SCHEMA,
		schedule: false,
		superviseIntervalSeconds: SUPERVISE_S,
		monitorIntervalSeconds: SUPERVISE_S,
		reindex: false,
	});
	/** Stops timers and connections, also those of a queue whose start failed halfway. */
	async function close(): Promise<void> {
		await made.stop({ graceful: false, timeout: STOP_MS }).catch(() => {});
		await end();
	}
	made.on("error", (error) => log.info("the queue of batches reported an error", { error }));
	try {
		await made.start();
		await made.createQueue(QUEUE, {
			policy: "exclusive",
			retryLimit: RETRIES_MAX,
			retryDelay: RETRY_S,
			expireInSeconds: EXPIRE_S,
			heartbeatSeconds: HEARTBEAT_S,
			deleteAfterSeconds: EXPIRE_S,
		});
	} catch (error) {
		await close();
		throw error;
	}
	return { made, close };
}
