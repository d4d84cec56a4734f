import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { type Catalog, createCatalog, createFixedCatalog, type FixedCatalog } from "../catalog/catalog.ts";
import { checkCatalog } from "../catalog/file.ts";
import { withMemoryLimits } from "../catalog/service-limits.ts";
import { watchCatalog } from "../catalog/watch.ts";
import type { YamlProblem } from "../catalog/yaml-reader.ts";
import type { Config } from "../config.ts";
import type { Statements } from "../db/statements.ts";

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

function wrongFile(path: string, problems: readonly YamlProblem[]): Fault {
	const list = problems.map((problem) => `${join(path)}:${problem.line}: ${problem.message}`).join("\n  ");
	return new Fault("invalid_request", `the catalogue has problems:\n  ${list}`);
}
