import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { type Cleanup, createCleanup } from "../base/cleanup.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import { type Catalog, createCatalog, createFixedCatalog, type FixedCatalog } from "../catalog/catalog.ts";
import { checkCatalog } from "../catalog/file.ts";
import { withMemoryLimits } from "../catalog/service-limits.ts";
import { watchCatalog } from "../catalog/watch.ts";
import type { Problem } from "../catalog/yaml-reader.ts";
import type { Config } from "../config.ts";
import { startEmbeddedPostgres } from "../db/embedded.ts";
import { hasFunctionSet } from "../db/function-set.ts";
import { migrate } from "../db/migrate.ts";
import type { Statements } from "../db/statements.ts";

export interface OpenDatabase {
	/** URL of a database with the complete schema and this version's SQL functions. */
	readonly url: string;
	/** Stops an embedded database; call it when all users have stopped. False if that failed. */
	release(): Promise<boolean>;
}

/**
 * Opens the configured database or an embedded one, and completes its schema. Rejects once `leaving` aborts, because
 * another process's migration may take minutes; a started database is then stopped.
 */
export async function openDatabase(
	deps: { log: Log; leaving?: AbortSignal | undefined },
	config: Pick<Config, "databaseUrl" | "runDir" | "dataDir">,
): Promise<OpenDatabase> {
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

/** Opens and watches the configured file, or returns a catalogue for the demo. Fault if the file has mistakes. */
export async function openCatalog(
	config: Pick<Config, "configPath" | "workers" | "demo" | "env">,
	deps: { statements: Statements; clock: Clock; log: Log; cleanup: Cleanup },
): Promise<{ catalog: Catalog; fixedCatalog: FixedCatalog | undefined }> {
	const { statements, clock, log } = deps;
	const path = config.configPath;
	const memoryBytes = memoryPerWorker(config.workers);
	if (path === null) {
		const fixedCatalog = createFixedCatalog({ statements, clock, log });
		if (!config.demo) await fixedCatalog.setModels([]);
		return { catalog: withMemoryLimits(fixedCatalog, { log, memoryBytes }), fixedCatalog };
	}
	const catalog = createCatalog({ statements, clock, log, env: config.env, readFile: () => readFile(path, "utf8") });
	const first = await catalog.reload();
	if (!first.ok) throw wrongFile(path, first.problems);
	const watch = watchCatalog({ clock, log, reload: () => catalog.reload(), isStale: catalog.isStale }, { path });
	deps.cleanup.add(() => watch.stop());
	return { catalog: withMemoryLimits(catalog, { log, memoryBytes }), fixedCatalog: undefined };
}

/** Memory of the machine or container, divided by the number of gateways. */
export function memoryPerWorker(workers: number): number {
	// A container without a limit reports 0, or more memory than the machine has.
	return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()) / workers;
}

/** Checks the file before a database is started. Fault if the file has mistakes. */
export async function checkConfiguredFile({ configPath, env }: Pick<Config, "configPath" | "env">): Promise<void> {
	if (configPath === null) return;
	const check = checkCatalog(await readFile(configPath, "utf8"), env);
	if (!check.ok) throw wrongFile(configPath, check.problems);
}

function wrongFile(path: string, problems: readonly Problem[]): Fault {
	const list = problems.map((problem) => `${join(path)}:${problem.line}: ${problem.message}`).join("\n  ");
	return new Fault("invalid_request", `the catalogue has problems:\n  ${list}`);
}
