import { mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { tryFileLock } from "../../src/base/file-lock.ts";
import { silentLog } from "../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { migrate } from "../../src/db/migrate.ts";

/**
 * One PostgreSQL for the whole test run, with a migrated template that each test file clones. The first file that
 * needs it starts it; the server outlives the file and is ended by `stopTestPostgres` or found again by the next run.
 */
export interface TestPostgres {
	/** Address of the maintenance database. */
	adminUrl: string;
	urlOf(database: string): string;
	template: string;
}

const HOME = join(tmpdir(), `tollgate-test-${process.getuid?.() ?? 0}`);

/** Durability is not what these tests are about, and a test machine's disk is slow. */
const SETTINGS = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" };

let shared: Promise<TestPostgres> | undefined;

export function testPostgres(): Promise<TestPostgres> {
	shared ??= start();
	return shared;
}

async function start(): Promise<TestPostgres> {
	mkdirSync(HOME, { recursive: true, mode: 0o755 });
	const lock = await waitForLock(join(HOME, "lock"));
	try {
		const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: HOME, settings: SETTINGS });
		const urlOf = (database: string) => server.url.replace(/\/tollgate$/, `/${database}`);
		const adminUrl = urlOf("postgres");
		const template = `template_${schemaDigest()}`;
		await makeTemplate(adminUrl, urlOf(template), template);
		return { adminUrl, urlOf, template };
	} finally {
		lock.release();
	}
}

async function waitForLock(path: string) {
	const giveUpAt = performance.now() + 60_000;
	for (;;) {
		const lock = tryFileLock(path);
		if (lock) return lock;
		if (performance.now() > giveUpAt) throw new Error(`nobody released ${path}`);
		await Bun.sleep(20);
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
		await admin.unsafe(`alter database ${template} is_template true`);
	} finally {
		await admin.end();
	}
}

/** Names the template after the schema, so that a changed migration makes a new one. */
function schemaDigest(): string {
	const root = join(import.meta.dir, "../../src/db");
	const hash = new Bun.CryptoHasher("sha256");
	for (const folder of ["migrations", "functions"]) {
		const files = [...new Bun.Glob("*.sql").scanSync(join(root, folder))].sort();
		for (const file of files) hash.update(readFileSync(join(root, folder, file)));
	}
	hash.update(readFileSync(join(root, "migrate.ts")));
	return hash.digest("hex").slice(0, 12);
}

/** A number that no other test process uses at the same time. */
export function uniqueName(prefix: string): string {
	return `${prefix}_${process.pid}_${Bun.randomUUIDv7().replaceAll("-", "").slice(-12)}`;
}
