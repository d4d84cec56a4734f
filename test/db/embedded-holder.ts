/**
 * Starts the embedded PostgreSQL in the given folder, prints its URL, and stops it at SIGTERM. A separate process, so
 * that tests can kill it or run it as another user.
 */
import { silentLog } from "../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";

const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: process.argv[2] as string });
process.on("SIGTERM", async () => {
	await server.stop();
	process.exit(0);
});
console.log(JSON.stringify({ url: server.url, adopted: server.adopted }));
setInterval(() => {}, 60_000);
