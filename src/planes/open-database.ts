import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import type { Config } from "../config.ts";
import { startEmbeddedPostgres } from "../db/embedded.ts";
import { isPrepared } from "../db/function-set.ts";
import { migrate } from "../db/migrate.ts";

export interface OpenDatabase {
	/** Of a database whose schema is there, with this version's functions. */
	readonly url: string;
	/** After all else has ended: gives up an embedded one. False if it is left running though nobody uses it. */
	release(): Promise<boolean>;
}

/**
 * The configured database, or an embedded one that is started here unless it runs, and stopped by who leaves it last; its schema is made. The
 * children of a supervisor get an address where all of that is done. Rejects once `leaving` aborts, with nothing left running: whoever makes
 * the schema now may keep others waiting for minutes.
 */
export async function openDatabase(
	deps: { log: Log; leaving?: AbortSignal | undefined },
	config: Pick<Config, "databaseUrl" | "runDir" | "dataDir">,
): Promise<OpenDatabase> {
	// A supervisor whose program was replaced meanwhile is of another version than its new children.
	if (config.databaseUrl !== null && config.runDir !== null && isPrepared(config.databaseUrl))
		return { url: config.databaseUrl, release: async () => true };
	const embedded =
		config.databaseUrl === null ? await startEmbeddedPostgres(deps, { dataDir: config.dataDir }) : undefined;
	const release = async () => (await embedded?.stop()) ?? true;
	try {
		const migrated = migrate(deps, config.databaseUrl ?? embedded?.url ?? "");
		const { url } = await (deps.leaving === undefined ? migrated : unlessAborted(deps.leaving, migrated));
		return { url, release };
	} catch (error) {
		await released(release);
		throw error;
	}
}

/** A Fault, so that no stop counts as one in order that leaves the server running. */
export async function released(release: OpenDatabase["release"]): Promise<void> {
	if (!(await release())) throw new Fault("service_unavailable", "The embedded PostgreSQL did not stop.");
}
