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
 * One PostgreSQL for all test runs of this user, with a migrated template that each test file clones. The first file
 * that needs it starts it. Each run holds a lock that the kernel frees when the run dies, and the last run to end in
 * order stops the server (`stopTestPostgres`, called by `preload.ts`); the next run adopts a killed run's server.
 */
export type TestPostgres = Awaited<ReturnType<typeof start>>;

const HOME = join(tmpdir(), `tollgate-test-${process.getuid?.() ?? 0}`);

/** Folder of files that are kept between runs. */
export function testHome(): string {
	return HOME;
}

/** No durability: these tests do not need it, and the disk is slow. */
export const FAST = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

const SETTINGS = {
	...FAST,
	max_connections: "800",
	max_wal_size: "256MB",
	// Without a standby, transactions that lock tables get no transaction id and do not delay the folding of sums
	// (`sums.ts`).
	wal_level: "minimal",
	max_wal_senders: "0",
	// Databases live for seconds, so background maintenance would find nothing worth doing.
	autovacuum: "off",
	// PostgreSQL plans a prepared statement's first five executions by value; few sessions here reach the sixth. A
	// generic plan from the start saves a tenth of the server's work.
	plan_cache_mode: "force_generic_plan",
};

/** The first statement of a session whose reads are counted: plans are chosen as in production. */
export const PLANS_AS_USUAL = "set plan_cache_mode = auto";

/**
 * Folder of the server's files, in memory: creating a database copies 640 files, which is ten times slower on a disk.
 */
function serverFolder(): string {
	return memoryFolder(tmpdir()) ?? HOME;
}

let shared: Promise<TestPostgres> | undefined;

export function testPostgres(): Promise<TestPostgres> {
	shared ??= start();
	return shared;
}

/** Stops the server after a run's last test, unless another process holds it for several runs. */
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
		// Idle connections stay open: the driver may lose the result of a statement sent while one closes.
		const admin = postgres(adminUrl, { max: 2, onnotice: () => {} });
		if (!server.adopted) await provePasswordCheaply(admin, server.url);
		return {
			adminUrl,
			/** Uses persistent connections, since opening a connection costs more than most statements. */
			asAdmin: async (statement: string) => void (await admin.unsafe(statement)),
			urlOf,
			template,
			/** Stops the server unless another run uses it. */
			async stop() {
				await admin.end({ timeout: 1 });
				await server.stop();
			},
		};
	} finally {
		lock.release();
	}
}

/** Stores the password with one hashing round: SCRAM's 4,096 for each of a run's thousands of connections are slow. */
async function provePasswordCheaply(admin: postgres.Sql, url: string): Promise<void> {
	const { username, password } = new URL(url);
	await admin.begin(async (tx) => {
		await tx`set local scram_iterations = 1`;
		await tx.unsafe(`alter role ${username} password '${password}'`);
	});
}

/** Removes databases of killed runs, and templates of other schemas. */
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
		// Opens a connection to the template, which writes PostgreSQL's catalogue cache file once for all clones.
		const reader = postgres(templateUrl, { max: 1, onnotice: () => {} });
		await reader`select 1`;
		await reader.end();
		await admin.unsafe(`alter database ${template} is_template true`);
	} finally {
		await admin.end();
	}
}

/** A digest of the schema, which names the template: a changed migration makes a new one. */
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

/** A name that no other test process uses at the same time. */
export function uniqueName(prefix: string): string {
	return `${prefix}_${process.pid}_${Bun.randomUUIDv7().replaceAll("-", "").slice(-12)}`;
}
