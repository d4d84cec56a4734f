import { join } from "node:path";
import { createBatchBooks } from "../batch/batch-books.ts";
import { createBatchRunner } from "../batch/batch-runner.ts";
import { type Batches, createBatches } from "../batch/batches.ts";
import { createHeldJobs } from "../batch/held-jobs.ts";
import type { Carrier } from "../batch/line-work.ts";
import type { Files } from "../files/files.ts";
import type { GatewayDeps } from "./gateway-deps.ts";

export interface OpenBatches extends Batches {
	/** Batches that wait because the database refuses their outcomes. */
	refused(): number;
	/** Stops sending lines; running ones may continue for half the drain. */
	stop(): Promise<void>;
}

/** After the last line, outcomes are stored and the queue is released. */
const STOP_MS_MAX = 15_000;

/**
 * Opens batches, and this instance's share of running them. The runner starts with the first model that takes batches.
 */
export function openBatches(
	options: { readonly drainMs: number; readonly dataDir: string },
	deps: GatewayDeps & { files: Files; carrier: Carrier },
): OpenBatches {
	const { db, clock, log, catalog, files, carrier } = deps;
	const books = createBatchBooks(db);
	const snapshot = () => catalog.current();
	const graceMs = options.drainMs / 2;
	const held = createHeldJobs({ log }, { folder: join(options.dataDir, "batch-jobs") });
	const refused = new Set<string>();
	const runner = createBatchRunner(
		{ refused, books, files, carrier, held, clock, log, snapshot, graceMs },
		{ databaseUrl: db.url },
	);
	const batches = createBatches({ books, files, snapshot, wake: runner.wake });
	const startIfOffered = () => {
		if (batches.areOffered()) void runner.start();
	};
	startIfOffered();
	const forget = catalog.onChange(startIfOffered);
	let stopping: Promise<void> | undefined;
	const stop = () => {
		forget();
		stopping ??= runner.stop();
		return stopping;
	};
	deps.cleanup.add(stop, graceMs + STOP_MS_MAX);
	return { ...batches, refused: () => refused.size, stop };
}
