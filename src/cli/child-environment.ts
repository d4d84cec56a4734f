import type { Environment } from "../base/environment-reader.ts";
import type { Config } from "../config.ts";
import { CONFIG_TABLE } from "../config-table.ts";
import type { Secrets } from "../secrets.ts";
import { runtimeEnvironment } from "./runtime-environment.ts";

/** Values that the supervisor passes to its child processes. */
export interface ChildSettings {
	readonly config: Pick<Config, "workers" | "demo" | "fileStore">;
	readonly secrets: Pick<Secrets, "keyPepper" | "consoleSecret" | "instanceId">;
	readonly databaseUrl: string;
	readonly internalSecret: string;
	readonly runDir: string;
	readonly port: number;
}

/** Variables of other programs that every process may need: paths, locale, proxies, certificates. */
const FOREIGN =
	/^(PATH|HOME|USER|LOGNAME|SHELL|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|TZ|LANG|LANGUAGE|LC_\w+|TMPDIR|TEMP|TMP|NODE_\w+|BUN_\w+|MIMALLOC_\w+|SSL_CERT_\w+|(https?|all|no)_proxy|DO_NOT_TRACK)$/i;

/**
 * Returns a gateway's environment. It lacks the console's variables, so that a gateway cannot leak them. It has all
 * other variables, because the catalogue may use any. The S3 key is included only if files are stored there.
 */
export function gatewayEnvironment(env: Environment, facts: ChildSettings, slot: number): Record<string, string> {
	const { config, secrets } = facts;
	const ofConsole = namesOf("console");
	const own = pick(env, (name) => !ofConsole.has(name) && (Boolean(env.S3_BUCKET) || !name.startsWith("S3_")));
	return {
		...(runtimeEnvironment(own) ?? own),
		...common(facts),
		ROLE: "gateway",
		// Passed on explicitly: its default depends on whether the database is embedded, which children cannot tell.
		FILE_STORE: config.fileStore,
		WORKER_INDEX: String(slot),
		// The demo always has one worker.
		WORKERS: String(config.demo ? 1 : config.workers),
		// A single gateway has the same id as one without a supervisor, and so the same journal.
		INSTANCE_ID: config.workers === 1 ? secrets.instanceId : `${secrets.instanceId}-w${slot}`,
	};
}

/** Returns only the console's variables, and so no key of a model server; the S3 key only for archives. */
export function consoleEnvironment(env: Environment, facts: ChildSettings): Record<string, string> {
	const { secrets } = facts;
	const known = new Set([...namesOf("console"), ...namesOf("both")]);
	const archivesToS3 = env.ARCHIVE?.startsWith("s3:") === true;
	return {
		...pick(env, (name) => (known.has(name) && (archivesToS3 || !name.startsWith("S3_"))) || FOREIGN.test(name)),
		...common(facts),
		ROLE: "console",
		INSTANCE_ID: secrets.instanceId,
		CONSOLE_SECRET: secrets.consoleSecret,
	};
}

function common({ config, secrets, databaseUrl, internalSecret, runDir, port }: ChildSettings): Record<string, string> {
	return {
		...(config.demo ? { DEMO: "1" } : {}),
		KEY_PEPPER: secrets.keyPepper,
		DATABASE_URL: databaseUrl,
		INTERNAL_SECRET: internalSecret,
		RUN_DIR: runDir,
		PORT: String(port),
	};
}

function namesOf(plane: "console" | "both"): Set<string> {
	return new Set(CONFIG_TABLE.filter((variable) => variable.plane === plane).map(({ name }) => name));
}

function pick(env: Environment, wanted: (name: string) => boolean): Record<string, string> {
	const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
	return Object.fromEntries(set.filter(([name]) => wanted(name)));
}
