/** The product as it is shipped: compiled, with production settings, a real Postgres and customers. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import postgres from "postgres";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDatabase } from "../../src/db/database.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { migrate } from "../../src/db/migrate.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { quietPort } from "../chaos/serve-process.ts";
import { paidAccount } from "../support/paid-account.ts";
import { waitFor } from "../support/wait.ts";
import { baseEnvironment, type Gateway, processGateway } from "./gateways.ts";
import { lowerPriority, onAnyCore, onGatewayCore } from "./machine.ts";
import { processTree } from "./process-usage.ts";

export const KEY_PEPPER = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
export const SERVICE_NAME = "service";
const CREDIT_NANO_USD = nanoUsd(1_000_000 * 1e9);
/** Nano-dollars per token: whole numbers, so that no charge is rounded. */
const INPUT_NANO_PER_TOKEN = 1_000;
const OUTPUT_NANO_PER_TOKEN = 2_000;
/** Deadline for statements, because checking the books of a million customers takes long. */
const STATEMENT_DEADLINE_MS = 30_000;
const READY_DEADLINE_MS = 60_000;
const SCARCE_PLACES = 4;

export type BenchDatabase = Awaited<ReturnType<typeof openBenchDatabase>>;

/** Starts Postgres with the product's programs, or with those in `POSTGRES_HOME`. */
export async function startBenchPostgres(folder: string) {
	const home = process.env.POSTGRES_HOME;
	const binaries = home === undefined ? {} : { binaries: { folder: resolve(home), version: "of-the-bench" } };
	const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: folder, ...binaries });
	const admin = postgres(server.url, { max: 1, onnotice: () => {} });
	const [row] = await admin<{ version: string; pid: number }[]>`
		select current_setting('server_version') as version, pg_backend_pid() as pid`;
	const [line] = (await Bun.file(join(folder, "postgres/cluster/postmaster.pid")).text()).split("\n");
	const pids = () => processTree(Number(line));
	/** URL of a new database without a schema. */
	async function emptyDatabase(name: string): Promise<string> {
		await admin.unsafe(`create database ${name}`);
		return server.url.replace(/\/[^/]*$/, `/${name}`);
	}
	return {
		version: `${row?.version ?? "unknown"}${home === undefined ? "" : " (POSTGRES_HOME)"}`,
		emptyDatabase,
		database: async (name: string) => openBenchDatabase(await emptyDatabase(name)),
		pids,
		/** Lowers Postgres's priority on the shared core while times are measured. */
		standBack: () => lowerPriority(pids()),
		async stop() {
			await admin.end({ timeout: 1 });
			await server.stop();
		},
	};
}

/** Opens and migrates an existing database. */
export async function openBenchDatabase(address: string, statementDeadlineMs = STATEMENT_DEADLINE_MS) {
	const { url } = await migrate({ log: silentLog }, address);
	const database = createDatabase(
		{ clock: systemClock, log: silentLog },
		{ url, applicationName: "bench", statementDeadlineMs },
	);
	const sql = postgres(url, { max: 2, onnotice: () => {} });
	const { statements } = database;
	const maker = { statements, digest: createDigest(KEY_PEPPER), serviceName: SERVICE_NAME };
	return {
		...database,
		sql,
		/** Creates an account with credit and keys; returns the keys' secrets. */
		async customer(keys: number) {
			const accountId = await paidAccount(statements, CREDIT_NANO_USD);
			const secrets: string[] = [];
			for (let key = 0; key < keys; key++)
				secrets.push((await createKey(maker, accountId, { name: `bench ${key}` })).secret);
			return { secrets };
		},
		/** Waits until no request runs or is queued, then returns the books. */
		async books() {
			let before = -1;
			for (;;) {
				const [row] = await sql<{ requests: string; charged: string; open: string }[]>`
					select count(*) as requests, coalesce(sum(charged_nano_usd), 0) as charged,
						(select count(*) from reservation) as open from usage_event`;
				const requests = Number(row?.requests);
				if (requests === before && Number(row?.open) === 0) {
					// After this many rows Postgres's planner needs new statistics.
					await sql`analyze`;
					const { ok, checks } = await reconcile(statements);
					const broken = checks.filter((check) => !check.ok).map(({ name, detail }) => `${name}: ${detail}`);
					return { requests, charged: Number(row?.charged), reconciled: ok, broken };
				}
				before = requests;
				await Bun.sleep(300);
			}
		},
		async close() {
			await sql.end({ timeout: 1 });
			await database.end();
		},
	};
}

/** The correct charge for the tokens that the model server counted. */
export function chargeOf(count: { prompt: number; completion: number }): number {
	return count.prompt * INPUT_NANO_PER_TOKEN + count.completion * OUTPUT_NANO_PER_TOKEN;
}

export interface ProductOptions {
	/** The command before `serve`: the binary, or the runtime with `src/main.ts`. */
	readonly command: readonly string[];
	readonly databaseUrl: string;
	readonly upstreamPort: number;
	/** Folder of the journal and the catalogue. */
	readonly folder: string;
	/** False: the process may use any core. */
	readonly pinned?: boolean;
	readonly env?: Record<string, string>;
}

/** Starts the product and waits until it is ready. */
export async function startProduct(options: ProductOptions): Promise<Gateway> {
	mkdirSync(options.folder, { recursive: true });
	const configPath = join(options.folder, "tollgate.yaml");
	await Bun.write(configPath, catalogText(options.upstreamPort));
	const port = quietPort();
	const logPath = join(options.folder, "service.log");
	writeFileSync(logPath, "");
	const argv = [...options.command, "serve"];
	const child = Bun.spawn(options.pinned === false ? onAnyCore(argv) : onGatewayCore(argv), {
		cwd: options.folder,
		env: {
			...baseEnvironment(),
			NODE_ENV: "production",
			KEY_PEPPER,
			CONSOLE_SECRET: KEY_PEPPER,
			DATABASE_URL: options.databaseUrl,
			DATA_DIR: join(options.folder, "data"),
			CONFIG: configPath,
			PORT: String(port),
			JOURNAL: "process",
			// Without a parent process, so that only the answering process is measured.
			ROLE: "gateway",
			// Time for writing the last window's settlements to Postgres before the books are read.
			DRAIN_S: "60",
			...options.env,
		},
		stdout: Bun.file(logPath),
		stderr: Bun.file(logPath),
	});
	const ended = child.exited.then(async (code) => {
		throw new Error(`the service ended with ${code}: ${(await Bun.file(logPath).text()).slice(-2000)}`);
	});
	const isReady = () =>
		fetch(`http://127.0.0.1:${port}/readyz`).then(
			({ ok }) => ok,
			() => false,
		);
	await Promise.race([waitFor(isReady, "the service to be ready", READY_DEADLINE_MS), ended]);
	ended.catch(() => {});
	return processGateway("tollgate", port, child);
}

function catalogText(upstreamPort: number): string {
	const model = (name: string, served = name, places = 20_000) => `  - id: ${name}
    kind: chat
    modes: [chat]
    context_length: 2000000
    max_output_tokens: 1000000
    parameters: [temperature, max_tokens]
    rates: { input: "1", cached_input: "1", output: "2" }
    upstreams:
      - url: http://127.0.0.1:${upstreamPort}/v1
        model: ${served}
        dialect: openai
        max_concurrency: ${places}
`;
	const ample = ["plain", "stream", "burst", "idle", "flood"].map((name) => model(name));
	return `models:\n${ample.join("")}${model("scarce", "plain", SCARCE_PLACES)}`;
}
