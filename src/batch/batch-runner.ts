import type { PgBoss } from "pg-boss";
import type { Log } from "../base/log.ts";
import type { BatchBooks } from "./batch-books.ts";
import type { HeldJobs } from "./held-jobs.ts";
import type { RunDeps } from "./run-batch.ts";
import { runBatch } from "./run-batch.ts";

/** This instance's share of the batches there are. */
export interface BatchRunner {
	/** From now on it takes batches; harmless when repeated. Resolves once it does. */
	start(): Promise<void>;
	/** There is work on this batch, for any instance. */
	wake(batch: { readonly id: string; readonly accountId: string }): void;
	/** Takes no more; what it has is given back, after `RunDeps.graceMs` at the latest. */
	stop(): Promise<void>;
}

export interface BatchRunnerOptions {
	readonly databaseUrl: string;
	/** Seconds without a sign of life after which another instance takes a batch over; 10 at least. */
	readonly heartbeatS?: number;
}

const QUEUE = "batch";
const SCHEMA = "batch_jobs";
/** Batches that one instance runs at once; of one account. */
const RUNS_MAX = 4;
const RUNS_ACCOUNT_MAX = 2;
/** Longer than an outage of the database that is to cost nothing. */
const HEARTBEAT_S = 30;
const POLL_S = 2;
/** How often an instance looks for those whose runner is gone. */
const SUPERVISE_S = 5;
const RETRY_S = 2;
/** A batch is over before that. */
const RETRIES_MAX = 1_000_000;
const EXPIRE_S = 24 * 3600;
const SWEEP_MS = 60_000;
const SWEPT_MAX = 1_000;
const CONNECTIONS_MAX = 2;
const STOP_MS = 8_000;

/**
 * The queue is pg-boss on the same Postgres, loaded with the first start: one job a batch, taken by any instance, given
 * to another when its heartbeats fail. It decides who runs a batch and never what is sent: that is `batch_claim`'s.
 */
export function createBatchRunner(
	deps: Omit<RunDeps, "othersWait"> & { readonly books: BatchBooks; readonly held: HeldJobs; readonly log: Log },
	options: BatchRunnerOptions,
): BatchRunner {
	const { books, clock, held, log } = deps;
	let boss: PgBoss | undefined;
	let worker: string | undefined;
	let starting: Promise<void> | undefined;
	let cancelSweep: () => void = () => {};
	const stopping = new AbortController();
	const running = new Set<Promise<void>>();

	async function begin(): Promise<void> {
		const made = await openQueue(options, log);
		try {
			worker = await takeJobs(made);
		} catch (error) {
			// The next attempt opens another one.
			await close(made);
			throw error;
		}
		boss = made;
		await sweep();
	}

	/** The id of who works on jobs from now on. */
	async function takeJobs(made: PgBoss): Promise<string> {
		// Before it takes any itself. A newer attempt, perhaps elsewhere, is left alone.
		for (const job of held.orphans()) {
			await made.fail(QUEUE, job, { message: "its process was killed" });
			log.info("a job of a process that was killed here is given back", { job: job.id });
		}
		return made.work<{ id: string }>(
			QUEUE,
			{
				batchSize: 1,
				localConcurrency: RUNS_MAX,
				localGroupConcurrency: RUNS_ACCOUNT_MAX,
				pollingIntervalSeconds: POLL_S,
			},
			async ([job]) => {
				if (job === undefined) return;
				const release = held.hold(job);
				await run(job.data.id, AbortSignal.any([stopping.signal, job.signal])).finally(release);
			},
		);
	}

	async function run(id: string, signal: AbortSignal): Promise<void> {
		// What the database refuses is told of until it goes on here.
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

	/** Jobs that wait for a place, as they were counted some seconds ago. */
	async function waiting(): Promise<number> {
		const counted = await boss?.getQueueStats(QUEUE);
		return counted?.at(-1)?.readyCount ?? 0;
	}

	/** A job that could not be made, that made room for others, or whose end was a mistake, is made again. */
	async function sweep(): Promise<void> {
		// A start that was under way when the stop came ends with a look, too.
		if (stopping.signal.aborted) return;
		cancelSweep = clock.after(SWEEP_MS, () => void sweep());
		try {
			// Page by page: those that are open for long are the first ones at each look.
			for (let after: string | undefined = ""; after !== undefined; ) {
				const open: { id: string; accountId: string }[] = await books.open(after, SWEPT_MAX);
				for (const batch of open) await send(batch);
				after = open.at(-1)?.id;
			}
			while (await books.dropLines());
		} catch (error) {
			log.info("batches could not be looked through; trying again", { error });
		}
	}

	/** Nothing happens if it is queued or run already. */
	async function send({ id, accountId }: { id: string; accountId: string }): Promise<void> {
		await boss?.send(QUEUE, { id }, { singletonKey: id, group: { id: accountId } });
	}

	const runner: BatchRunner = {
		start() {
			if (stopping.signal.aborted) return starting ?? Promise.resolve();
			starting ??= begin().catch((error) => {
				log.error("the queue of batches could not be started; trying again", { error });
				starting = undefined;
				if (!stopping.signal.aborted) cancelSweep = clock.after(SWEEP_MS, () => void runner.start());
			});
			return starting;
		},
		wake(batch) {
			void runner.start().then(async () => {
				try {
					await send(batch);
					if (worker !== undefined) boss?.notifyWorker(worker);
				} catch (error) {
					log.info("a batch could not be queued; it is with the next look", { batch: batch.id, error });
				}
			});
		},
		async stop() {
			cancelSweep();
			stopping.abort();
			await starting;
			await Promise.allSettled(running);
			await boss?.stop({ graceful: true, timeout: STOP_MS });
		},
	};
	return runner;
}

/** The queue's client reads `sslmode` in a way of its own unless it is told to read it as everybody else does. */
function connectionString(databaseUrl: string): string {
	const url = new URL(databaseUrl);
	if (url.searchParams.has("sslmode")) url.searchParams.set("uselibpqcompat", "true");
	return url.href;
}

async function openQueue(options: BatchRunnerOptions, log: Log): Promise<PgBoss> {
	const { PgBoss: Boss } = await import("pg-boss");
	const made = new Boss({
		connectionString: connectionString(options.databaseUrl),
		application_name: "tollgate batches",
		schema: SCHEMA,
		max: CONNECTIONS_MAX,
		schedule: false,
		superviseIntervalSeconds: SUPERVISE_S,
		monitorIntervalSeconds: SUPERVISE_S,
		reindex: false,
	});
	made.on("error", (error) => log.info("the queue of batches met an error", { error }));
	try {
		await made.start();
		await made.createQueue(QUEUE, {
			policy: "exclusive",
			retryLimit: RETRIES_MAX,
			retryDelay: RETRY_S,
			expireInSeconds: EXPIRE_S,
			heartbeatSeconds: options.heartbeatS ?? HEARTBEAT_S,
			deleteAfterSeconds: EXPIRE_S,
		});
	} catch (error) {
		await close(made);
		throw error;
	}
	return made;
}

/** Of one whose start failed halfway: its timers and connections go, whatever it says to that. */
async function close(made: PgBoss): Promise<void> {
	await made.stop({ graceful: false, timeout: STOP_MS }).catch(() => {});
}
