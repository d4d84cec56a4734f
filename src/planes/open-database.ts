import type { Cleanup } from "../base/cleanup.ts";
import type { Log } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import type { Config } from "../config.ts";
import { EMBEDDED_STOP_MS_MAX, startEmbeddedPostgres } from "../db/embedded.ts";
import { isPrepared } from "../db/function-set.ts";
import { migrate } from "../db/migrate.ts";

/**
 * The address of a database whose schema is there, with this version's functions: the configured one, or an embedded one that is started here unless
 * it runs, and stopped by who leaves it last. The children of a supervisor get an address where all of that is done. Rejects once `leaving`
 * aborts: whoever makes the schema now may keep others waiting for minutes.
 */
export async function openDatabase(
	deps: { log: Log; cleanup: Cleanup; leaving?: AbortSignal | undefined },
	config: Config,
): Promise<string> {
	// A supervisor whose program was replaced meanwhile is of another version than its new children.
	if (config.databaseUrl !== null && config.runDir !== null && isPrepared(config.databaseUrl))
		return config.databaseUrl;
	const migrated = migrate(deps, config.databaseUrl ?? (await embeddedUrl(deps, config)));
	const { url } = await (deps.leaving === undefined ? migrated : unlessAborted(deps.leaving, migrated));
	return url;
}

async function embeddedUrl({ log, cleanup }: { log: Log; cleanup: Cleanup }, config: Config): Promise<string> {
	const embedded = await startEmbeddedPostgres({ log }, { dataDir: config.dataDir });
	cleanup.add(() => embedded.stop(), EMBEDDED_STOP_MS_MAX);
	return embedded.url;
}
