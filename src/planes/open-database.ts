import { type Cleanup, createCleanup } from "../base/cleanup.ts";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import type { Config } from "../config.ts";
import { startEmbeddedPostgres } from "../db/embedded.ts";
import { hasFunctionSet } from "../db/function-set.ts";
import { migrate } from "../db/migrate.ts";

export type OpenDatabase = Awaited<ReturnType<typeof openDatabase>>;

/**
 * Opens the configured database or an embedded one, and completes its schema. Rejects once `leaving` aborts, because
 * another process's migration may take minutes; a started database is then stopped. `release` stops an embedded
 * database; call it when all users have stopped. It resolves with false if that failed.
 */
export async function openDatabase(
	deps: { log: Log; leaving?: AbortSignal | undefined },
	config: Pick<Config, "databaseUrl" | "runDir" | "dataDir">,
) {
	// After an upgrade the child processes may be newer than the supervisor that prepared the URL, so they check it.
	if (config.databaseUrl !== null && config.runDir !== null && hasFunctionSet(config.databaseUrl))
		return { url: config.databaseUrl, release: async () => true };
	const embedded =
		config.databaseUrl === null ? await startEmbeddedPostgres(deps, { dataDir: config.dataDir }) : undefined;
	const release = async () => (await embedded?.stop()) ?? true;
	try {
		const migrated = migrate(deps, config.databaseUrl ?? embedded?.url ?? "");
		const { url } = await (deps.leaving === undefined ? migrated : unlessAborted(deps.leaving, migrated));
		return { url, release };
	} catch (error) {
		await releaseOrThrow(release);
		throw error;
	}
}

/** Opens the database and starts a plane on it. `end`, and a failed start, release everything. */
export async function startOnDatabase<Served>(
	config: Pick<Config, "databaseUrl" | "runDir" | "dataDir">,
	deps: { log: Log; leaving?: AbortSignal | undefined },
	start: (parts: { cleanup: Cleanup; databaseUrl: string; end(): Promise<void> }) => Promise<Served>,
): Promise<Served> {
	const { url, release } = await openDatabase(deps, config);
	const cleanup = createCleanup({ clock: systemClock, log: deps.log });
	const end = async () => {
		await cleanup.run();
		await releaseOrThrow(release);
	};
	try {
		return await start({ cleanup, databaseUrl: url, end });
	} catch (error) {
		await end();
		throw error;
	}
}

/** Throws if the database still runs, so that such a stop does not look clean. */
export async function releaseOrThrow(release: OpenDatabase["release"]): Promise<void> {
	if (!(await release())) throw new Fault("service_unavailable", "The embedded PostgreSQL did not stop.");
}
