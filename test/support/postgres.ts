import { mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { waitForFileLock } from "../../src/base/file-lock.ts";
import { silentLog } from "../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { migrate } from "../../src/db/migrate.ts";
import { memoryFolder } from "./memory-folder.ts";

/**
 * One PostgreSQL server for all test runs of this user, with a migrated template that each test file clones. The first
 * file that needs it starts it. Each run holds a file lock, which the kernel releases when the run dies. The last run
 * to end stops the server (`stopTestPostgres`, called by `preload.ts`); if it was killed, the next run takes the server
 * over.
 */
export type TestPostgres = Awaited<ReturnType<typeof start>>;

const HOME = join(tmpdir(), `tollgate-test-${process.getuid?.() ?? 0}`);

/** Folder of files that are kept from run to run. */
export function testHome(): string {
	return HOME;
}

/** Durability is off: these tests do not need it, and the disk is slow. */
export const NO_DURABILITY = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

const SETTINGS = {
	...NO_DURABILITY,
	max_connections: "800",
	max_wal_size: "256MB",
	// At this level, transactions that lock tables get no transaction id, and do not delay the summing of usage
	// (`sums.ts`).
	wal_level: "minimal",
	max_wal_senders: "0",
	// Databases exist for seconds, so background maintenance would find nothing to do.
	autovacuum: "off",
	// By default PostgreSQL plans the first five executions of a prepared statement individually, and few sessions here
	// reach the sixth. Generic plans from the start save a tenth of the server's work.
	plan_cache_mode: "force_generic_plan",
};

/** First statement of a session whose reads are counted: it plans statements as production does. */
export const SET_AUTO_PLANS = "set plan_cache_mode = auto";

/** Folder of the server's files, in memory: creating a database copies 640 files, ten times slower on a disk. */
function serverFolder(): string {
	return memoryFolder(tmpdir()) ?? HOME;
}

let shared: Promise<TestPostgres> | undefined;

export function testPostgres(): Promise<TestPostgres> {
	shared ??= start();
	return shared;
}

/** Stops the server after a run's last test, unless another process holds its lock. */
export async function stopTestPostgres(): Promise<void> {
	if (Bun.env.TEST_POSTGRES_HELD !== undefined) return;
	const running = shared;
	shared = undefined;
	await (await running?.catch(() => undefined))?.stop();
}

async function start() {
	mkdirSync(HOME, { recursive: true, mode: 0o755 });
	const lock = await waitForFileLock(join(HOME, "lock"), 60_000);
	if (lock === undefined) throw new Error(`nobody released ${HOME}/lock`);
	try {
		const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: serverFolder(), settings: SETTINGS });
		const urlOf = (database: string) => server.url.replace(/\/tollgate$/, `/${database}`);
		const adminUrl = urlOf("postgres");
		const template = `template_${schemaDigest()}`;
		if (!server.adopted) await dropLeftovers(adminUrl, template);
		await makeTemplate(adminUrl, urlOf(template), template);
		// Idle connections stay open: the driver may lose the result of a statement sent while a connection closes.
		const admin = postgres(adminUrl, { max: 2, onnotice: () => {} });
		if (!server.adopted) await provePasswordCheaply(admin, server.url);
		return {
			adminUrl,
			/** Runs a statement as administrator on a persistent connection; opening one costs more than most statements. */
			asAdmin: async (statement: string) => void (await admin.unsafe(statement)),
			urlOf,
			template,
			/** Stops the server unless another run is using it. */
			async stop() {
				await admin.end({ timeout: 1 });
				await server.stop();
			},
		};
	} finally {
		lock.release();
	}
}

/** Stores the password with a single hashing round: SCRAM's 4,096 are slow for thousands of connections. */
async function provePasswordCheaply(admin: postgres.Sql, url: string): Promise<void> {
	const { username, password } = new URL(url);
	await admin.begin(async (tx) => {
		await tx`set local scram_iterations = 1`;
		await tx.unsafe(`alter role ${username} password '${password}'`);
	});
}

/** Removes databases of killed runs, and templates of other versions of the schema. */
async function dropLeftovers(adminUrl: string, template: string): Promise<void> {
	const admin = postgres(adminUrl, { max: 1, onnotice: () => {} });
	try {
		const rows = await admin<{ datname: string; datistemplate: boolean }[]>`
			select datname, datistemplate from pg_database
			where datname like 'test\\_%' or (datname like 'template\\_%' and datname <> ${template})`;
		for (const { datname, datistemplate } of rows) {
			if (datistemplate) await admin.unsafe(`alter database ${datname} is_template false`);
			await admin.unsafe(`drop database if exists ${datname}`);
		}
	} finally {
		await admin.end();
	}
}

async function makeTemplate(adminUrl: string, templateUrl: string, template: string): Promise<void> {
	const admin = postgres(adminUrl, { max: 1, onnotice: () => {} });
	try {
		const [found] = await admin`select 1 from pg_database where datname = ${template} and datistemplate`;
		if (found) return;
		await admin.unsafe(`drop database if exists ${template}`);
		await admin.unsafe(`create database ${template}`);
		await migrate({ log: silentLog }, templateUrl);
		// Connects to the template once, so that PostgreSQL writes its catalogue cache file, which all clones then contain.
		const reader = postgres(templateUrl, { max: 1, onnotice: () => {} });
		await reader`select 1`;
		await reader.end();
		await admin.unsafe(`alter database ${template} is_template true`);
	} finally {
		await admin.end();
	}
}

/** A digest of the schema, which is part of the template's name: a changed migration makes a new template. */
function schemaDigest(): string {
	const root = join(import.meta.dir, "../../src/db");
	const hash = new Bun.CryptoHasher("sha256");
	for (const folder of ["migrations", "functions"]) {
		const files = [...new Bun.Glob("*.sql").scanSync(join(root, folder))].sort();
		for (const file of files) hash.update(readFileSync(join(root, folder, file)));
	}
	for (const file of ["migrate.ts", "function-set.ts"]) hash.update(readFileSync(join(root, file)));
	return hash.digest("hex").slice(0, 12);
}

/** Returns a name that no other test process uses at the same time. */
export function uniqueName(prefix: string): string {
	return `${prefix}_${process.pid}_${Bun.randomUUIDv7().replaceAll("-", "").slice(-12)}`;
}
