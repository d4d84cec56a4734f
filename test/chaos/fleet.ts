import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { confirmTopUp, createTopUp } from "../../src/billing/top-ups.ts";
import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import { waitUntilApplied } from "../../src/cluster/fence.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import { migrate } from "../../src/db/migrate.ts";
import { createStatements } from "../../src/db/statements.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import type { KeySettings } from "../../src/keys/key-settings.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { PROGRAM, type Program } from "../cli/run-cli.ts";
import { untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { chatModel } from "../support/service.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { startCountingUpstream } from "./counting-upstream.ts";
import { quietPort, type ServeProcess, startServe } from "./serve-process.ts";

/** Price of the model (see `chatModel`): USD 1 per million input tokens, USD 2 per million output tokens. */
export const NANO_USD_A_PROMPT_TOKEN = 1_000;
export const NANO_USD_AN_OUTPUT_TOKEN = 2_000;
export const MODEL = "test-model";
export const LEASE_TTL_MS = 5_000;
/** Lease in seconds for tests that do not need its end: long enough for a busy machine. */
export const LEASE_TTL_S_QUIET = "20";
/** Milliseconds that the command line waits by default, because clocks run at different speeds. */
export const GRACE_MS = 1_000;

/** Real instances of the service on one database. The operator's actions run in this process. */
export type Fleet = Awaited<ReturnType<typeof startFleet>>;
export type FleetMember = Fleet["members"][number];

export interface FleetOptions {
	databaseUrl: string;
	upstreamUrl: string;
	instances?: number;
	/** YAML of the model; by default `chatModel` with high concurrency. */
	model?: string;
	env?: Readonly<Record<string, string>>;
	/** Program of all instances at first. A previous version then also creates the schema. */
	program?: Program;
}

const TOP_UP = 100_000_000_000;
/** Milliseconds for which starts are repeated, because the database may be down. */
const START_WITHIN_MS = 30_000;

/**
 * True if running instances have replayed the journals of crashes. They do so while they serve; a stop waits for it no
 * longer than its drain time.
 */
export function areJournalsReplayed(members: readonly FleetMember[]): boolean {
	return members.every((member) => member.journals().length <= 1);
}

/** Starts an upstream and instances for all tests of a file, by default on a database of their own. */
export async function withFleet({ gapMsMax = 1, ...options }: Partial<FleetOptions> & { gapMsMax?: number } = {}) {
	const databaseUrl = options.databaseUrl ?? (await withDatabase()).url;
	const upstream = untilEnd(await startCountingUpstream({ gapMsMax, failures: 0 }));
	const fleet = untilEnd(await startFleet({ ...options, databaseUrl, upstreamUrl: upstream.url }));
	return { upstream, fleet, member: fleet.members[0] as FleetMember };
}

export async function startFleet(options: FleetOptions) {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-chaos-"));
	const configPath = join(folder, "tollgate.yaml");
	const chats = chatModel({ url: options.upstreamUrl, dialect: "vllm" });
	writeFileSync(configPath, `models:\n${options.model ?? `${chats}\n        max_concurrency: 512`}\n`);
	const pepper = crypto.randomUUID().repeat(2);
	const shared = {
		CONFIG: configPath,
		KEY_PEPPER: pepper,
		CONSOLE_SECRET: crypto.randomUUID().repeat(2),
		LEASE_TTL_S: String(LEASE_TTL_MS / 1_000),
		DRAIN_S: "15",
		...options.env,
	};
	const members = Array.from({ length: options.instances ?? 3 }, (_, index) =>
		createMember(index, folder, options, shared),
	);
	if (options.program !== undefined) await members[0]?.start();
	const { url } = await migrate({ log: silentLog }, options.databaseUrl);
	const statements = createStatements(
		{ clock: systemClock, log: silentLog },
		{ url, connectionsMax: 4, statementDeadlineMs: 3_000, applicationName: "operator" },
	);
	const sql = postgres(url, { max: 2, onnotice: () => {}, connect_timeout: 5 });
	const maker = { statements, digest: createDigest(pepper), serviceName: "service" };
	const fleet = {
		members,
		statements,
		sql,
		env: { ...shared, DATABASE_URL: options.databaseUrl, DATA_DIR: join(folder, "operator") },
		folder,
		/**
		 * Creates a vouched account with `credit` nano-dollars: top-ups of USD 100 each, and an adjustment for the rest.
		 */
		async account(credit = TOP_UP) {
			const { id } = await createAccount(statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true });
			const reference = crypto.randomUUID();
			const topUp = { accountId: id, amountNanoUsd: nanoUsd(TOP_UP), method: "transfer" as const, reference };
			await confirmTopUp(statements, (await createTopUp(statements, topUp)).id, "test");
			if (credit !== TOP_UP)
				await statements`select ledger_book(${crypto.randomUUID()}, ${id}, 'adjustment', ${credit - TOP_UP}, ${crypto.randomUUID()}, 'test', '', false)`;
			return id;
		},
		async key(accountId: string, settings: KeySettings = {}) {
			const { id, secret } = await createKey(maker, accountId, { name: "test", ...settings });
			return { id, secret };
		},
		/** Waits until a control entry is effective, as `key revoke` does. */
		applied: (entry: AppendedEntry, deadlineMs = 60_000) =>
			waitUntilApplied({ store: createPgFenceStore(statements), clock: systemClock }, entry, {
				deadlineMs,
				graceMs: GRACE_MS,
			}),
		async stop() {
			await Promise.all(members.map((member) => member.crash()));
			for (const { proxy } of members) proxy.stop();
			await Promise.all([sql.end({ timeout: 1 }), statements.end()]);
			rmSync(folder, { recursive: true, force: true });
		},
	};
	try {
		await Promise.all(members.filter((member) => !member.process()).map((member) => member.start()));
	} catch (error) {
		await fleet.stop();
		throw error;
	}
	return fleet;
}

/** Creates an instance, whose identity, port and folder outlive its processes. */
function createMember(index: number, folder: string, options: FleetOptions, shared: Readonly<Record<string, string>>) {
	const database = new URL(options.databaseUrl);
	const proxy = startTcpProxy({ hostname: database.hostname, port: Number(database.port) });
	database.port = String(proxy.port);
	const dataDir = join(folder, `instance-${index}`);
	mkdirSync(dataDir);
	const port = quietPort();
	const logPath = join(folder, `instance-${index}.log`);
	const env = {
		...shared,
		DATABASE_URL: database.href,
		DATA_DIR: dataDir,
		PORT: String(port),
		INSTANCE_ID: `i${index}`,
	};
	let process: ServeProcess | undefined;
	let program = options.program ?? PROGRAM;
	return {
		index,
		url: `http://127.0.0.1:${port}`,
		dataDir,
		/** Address of the database through the instance's proxy. */
		databaseUrl: database.href,
		proxy,
		logPath,
		process: () => process,
		/** Program of the instance; by default the current version. */
		get program() {
			return program;
		},
		/** Sets the program for the instance's next start. */
		become(other: Program) {
			program = other;
		},
		/** Starts the instance and waits until it listens. Repeats a start that fails. */
		async start() {
			const giveUpAtMs = performance.now() + START_WITHIN_MS;
			for (;;) {
				try {
					process = await startServe(env, { logPath, program });
					return process;
				} catch (error) {
					if (performance.now() > giveUpAtMs) throw error;
					await Bun.sleep(100);
				}
			}
		},
		async crash() {
			process?.kill("SIGKILL");
			await process?.exited;
			process = undefined;
		},
		/**
		 * Stops the instance and returns its exit code. After SIGTERM it serves for a quarter of `DRAIN_S`; SIGINT stops it
		 * at once.
		 */
		async stop(signal: "SIGTERM" | "SIGINT" = "SIGTERM") {
			process?.kill(signal);
			const code = (await process?.exited) ?? 0;
			process = undefined;
			return code;
		},
		/** Folders of journals that have not been replayed. */
		journals() {
			const root = join(dataDir, "journal");
			if (!existsSync(root)) return [];
			return [...new Bun.Glob("*/*").scanSync({ cwd: root, onlyFiles: false })];
		},
	};
}
