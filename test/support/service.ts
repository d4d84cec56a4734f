import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { loadConfig } from "../../src/config.ts";
import { hasFunctionSet } from "../../src/db/function-set.ts";
import type { JobOptions } from "../../src/jobs/jobs.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import type { KeySettings } from "../../src/keys/key-settings.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { accountBalance, type Balance } from "../../src/ledger/balance.ts";
import { type BooksCheck, reconcile } from "../../src/ledger/reconciler.ts";
import { nanoUsd, parseUsd } from "../../src/money/nano-usd.ts";
import type { OpenDatabase } from "../../src/planes/open-database.ts";
import { createApp } from "./app.ts";
import { untilEnd } from "./at-end.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { payIn } from "./paid-account.ts";
import { requestsTo } from "./requests.ts";
import { withUpstream } from "./upstream-server.ts";
import { waitFor } from "./wait.ts";

export type TestService = Awaited<ReturnType<typeof startService>>;

export interface ServiceOptions {
	/** YAML of the models; default: one chat model whose server does not answer. */
	readonly models?: string;
	readonly limits?: string;
	readonly brand?: string;
	readonly env?: Record<string, string>;
	/** Default: a new database, which is dropped with the service. */
	readonly database?: TestDatabase;
	readonly clock?: Clock;
	/** Pace of the console's jobs; by default no job runs during a test. */
	readonly jobs?: JobOptions | undefined;
}

/** With this pace each job runs for the first time after half an hour or more. */
const NO_JOBS: JobOptions = { pace: 1 / 1_000 };
export const JOBS_AS_USUAL: JobOptions = {};

/** Starts a service for all tests of a file: await it at the top; it is stopped after the last test. */
export async function withService(options: ServiceOptions): Promise<TestService> {
	return untilEnd(await startService(options));
}

/** Starts a service with one chat model and the model's scripted server, for all tests of a file. */
export async function withChat(options: Omit<ServiceOptions, "models"> & { dialect?: DialectName } = {}) {
	const { dialect = "openai", ...others } = options;
	const upstream = withUpstream(dialect);
	return { upstream, service: await withService({ models: chatModel({ url: upstream.url, dialect }), ...others }) };
}

/** Starts both planes in this process, with an own port and database. */
export async function startService(options: ServiceOptions) {
	const db = options.database ?? (await createTestDatabase());
	const dataDir = mkdtempSync(join(tmpdir(), "tollgate-service-"));
	const configPath = join(dataDir, "tollgate.yaml");
	writeFileSync(configPath, catalogText(options.models ?? SILENT_MODEL, options.limits, options.brand));
	const env = { PORT: "0", DATABASE_URL: db.url, DATA_DIR: dataDir, CONFIG: configPath, DRAIN_S: "2", ...options.env };
	const logged: Record<string, unknown>[] = [];
	const log = createLog({ level: "debug", write: (line) => void logged.push(JSON.parse(line)) });
	const app = await createApp(loadConfig(env, dataDir), {
		log,
		...(options.clock ? { clock: options.clock } : {}),
		jobs: options.jobs ?? NO_JOBS,
		database: preparedDatabase(env.DATABASE_URL),
	});
	const maker = {
		statements: db.statements,
		digest: createDigest(app.secrets.keyPepper),
		serviceName: app.config.serviceName,
	};

	const service = {
		app,
		url: app.url,
		...requestsTo(app.url),
		db,
		dataDir,
		logged,
		/** Creates an account with confirmed credit, or none if `credit` is null. Amounts are in decimal dollars. */
		async account({
			credit = "100",
			exactCredit,
		}: {
			credit?: string | null;
			exactCredit?: number;
		} = {}): Promise<string> {
			const { id } = await createAccount(db.statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true });
			if (credit !== null) {
				const amount = parseUsd(credit);
				if (amount === undefined) throw new Error(`not an amount: ${credit}`);
				await payIn(db.statements, id, amount);
				if (exactCredit !== undefined) {
					const change = nanoUsd(exactCredit - amount);
					await db.statements`select ledger_book(${crypto.randomUUID()}, ${id}, 'adjustment', ${change}, ${crypto.randomUUID()}, 'test', '', false)`;
				}
			}
			return id;
		},
		async key(accountId: string, settings: KeySettings = {}): Promise<{ id: string; secret: string }> {
			const { id, secret } = await createKey(maker, accountId, { name: "test", ...settings });
			return { id, secret };
		},
		async customer({ exactCredit, settings }: { exactCredit?: number; settings?: KeySettings } = {}) {
			const accountId = await service.account(exactCredit === undefined ? {} : { exactCredit });
			const { id, secret } = await service.key(accountId, settings);
			return { accountId, keyId: id, secret };
		},
		/** Resolves when no request is running and Postgres has every settlement. */
		async settled() {
			await waitFor(() => {
				const view = app.instanceLease.present()?.view();
				return view !== undefined && view.running === 0 && view.queued === 0;
			}, "all requests to be settled in Postgres");
		},
		async usage(accountId: string): Promise<Record<string, string | number | null>[]> {
			// Sorts by id instead of by time: ids of a process never decrease, while its clock may be set back.
			return await db.sql`select * from usage_event where account_id = ${accountId} order by request_id`;
		},
		balance: (accountId: string): Promise<Balance> => accountBalance(db.statements, accountId),
		reconciled: async (): Promise<readonly BooksCheck[]> => (await reconcile(db.statements)).checks,
		/** Replaces the catalogue, as after a SIGHUP. */
		async serve(models: string, limits?: string) {
			writeFileSync(configPath, catalogText(models, limits));
			await app.reload();
			if (app.catalog.problems().length > 0) throw new Error(JSON.stringify(app.catalog.problems()));
		},
		async stop() {
			await app.stop();
			await db.drop();
			rmSync(dataDir, { recursive: true, force: true });
		},
	};
	return service;
}

/**
 * Database option for a supervisor's children: skips the check of the schema, which costs a fifth of a start. A cloned
 * database has the schema.
 */
export function preparedDatabase(url: string): OpenDatabase | undefined {
	return hasFunctionSet(url) ? { url, release: async () => true } : undefined;
}

function catalogText(models: string, limits?: string, brand?: string): string {
	return `models:\n${models}\n${limits ? `limits:\n${limits}\n` : ""}${brand ? `brand:\n${brand}\n` : ""}`;
}

/** YAML of a chat model with round rates: USD 1 per million input tokens, USD 2 per million output tokens. */
export function chatModel(options: { id?: string; url: string; dialect?: string; extra?: string }): string {
	return `  - id: ${options.id ?? "test-model"}
    kind: chat
    modes: [chat, completions]
    context_length: 8192
    max_output_tokens: 1024
    parameters: [temperature, top_p, max_tokens, max_completion_tokens, n, stop, seed, tools, tool_choice, response_format, logprobs, top_logprobs]
    rates: { input: "1", cached_input: "0.5", output: "2" }
${options.extra ?? ""}
    upstreams:
      - url: ${options.url}
        model: served-name
        dialect: ${options.dialect ?? "openai"}`;
}

/** YAML of a chat model whose context of 16 tokens makes the reserved prompt equal the charged one. */
export const tinyModel = (url: string, id?: string): string =>
	chatModel({ url, dialect: "vllm", ...(id ? { id } : {}) })
		.replace("context_length: 8192", "context_length: 16")
		.replace("max_output_tokens: 1024", "max_output_tokens: 16");

const SILENT_MODEL = chatModel({ url: "http://127.0.0.1:9" });
