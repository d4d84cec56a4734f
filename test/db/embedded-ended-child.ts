/** Starts the embedded PostgreSQL in the given folder and exits at the given step of the start. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { findPostmaster } from "../../src/db/postmaster.ts";

const [, , dataDir = "", moment = ""] = process.argv;
const folder = join(dataDir, "postgres");
const cluster = join(folder, "cluster");
const MOMENTS: Readonly<Record<string, () => boolean>> = {
	"its files are made": () => existsSync(folder) && readdirSync(folder).some((name) => /^initdb-\d+$/.test(name)),
	"it has been started and is nowhere on record": () => existsSync(cluster),
	"it is on record": () => existsSync(join(cluster, "postmaster.pid")),
	"it is ready": () => findPostmaster(cluster)?.ready === true,
};

const hasCome = MOMENTS[moment];
if (hasCome !== undefined) setInterval(() => hasCome() && process.exit(3), 1);
await startEmbeddedPostgres({ log: silentLog }, { dataDir, settings: { fsync: "off" } });
process.exit(moment === "it is used" ? 3 : 1);
