/** A Postgres of the bench's own that can be filled without care and is measured with it. */
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { silentLog } from "../../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../../src/db/embedded.ts";
import { migrate } from "../../../src/db/migrate.ts";
import type { Filled, Size } from "./fill.ts";
import { fill } from "./fill.ts";

/** For the fill alone: a crash in the midst of it loses everything, and nobody minds. */
const CARELESS = {
	fsync: "off",
	synchronous_commit: "off",
	full_page_writes: "off",
	wal_level: "minimal",
	max_wal_senders: "0",
	max_wal_size: "4GB",
	shared_buffers: "512MB",
	maintenance_work_mem: "1GB",
	autovacuum: "off",
};
const MEASURED = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track": "all" };

/** A server on the folder, filled if it is not yet; what was written stands in `filled.json` beside it. */
export async function filledServer(folder: string, size: Size, say: (line: string) => void) {
	mkdirSync(folder, { recursive: true });
	// Postgres runs as a user of its own and must reach its directory.
	chmodSync(folder, 0o755);
	const note = join(folder, "filled.json");
	if (!existsSync(note)) await Bun.write(note, JSON.stringify(await fillNow(folder, size, say)));
	const filled = JSON.parse(readFileSync(note, "utf8")) as Filled;
	const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: folder, settings: MEASURED });
	return { filled, url: server.url, stop: () => server.stop() };
}

async function fillNow(folder: string, size: Size, say: (line: string) => void): Promise<Filled> {
	const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: folder, settings: CARELESS });
	try {
		const { url } = await migrate({ log: silentLog }, server.url);
		const sql = postgres(url, { max: 1, onnotice: () => {} });
		try {
			return await fill(sql, size, say);
		} finally {
			await sql.end();
		}
	} finally {
		await server.stop();
	}
}
