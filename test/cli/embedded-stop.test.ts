import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { atEnd, temporaryFolder, testsMayTake } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { waitFor } from "../support/wait.ts";
import { FROM_SOURCE } from "./run-cli.ts";

testsMayTake(120_000);

async function stopWithHungDatabase(role: string) {
	const dataDir = temporaryFolder(quickFolder());
	chmodSync(dataDir, 0o755);
	await placeCluster(dataDir);
	const cluster = join(dataDir, "postgres", "cluster");
	atEnd(async () => {
		const left = findPostmaster(cluster);
		// Continues the paused server, which then carries out the stop that was requested before.
		if (left !== undefined) process.kill(left.pid, "SIGCONT");
		await waitFor(() => findPostmaster(cluster) === undefined, "the server's end");
	});
	writeFileSync(join(dataDir, "none.yaml"), "models: []\n");
	const server = await startServe(
		{ ROLE: role, DATA_DIR: dataDir, CONFIG: join(dataDir, "none.yaml"), PORT: String(quietPort()), DRAIN_S: "1" },
		{ ready: role === "all" ? "all processes are ready" : "listening", program: FROM_SOURCE },
	);
	server.kill("SIGTERM");
	await server.logged(({ message }) => message === "stopping", "that it stops");
	process.kill(findPostmaster(cluster)?.pid as number, "SIGSTOP");
	return { exitCode: await server.exited, said: server.lines.map(({ message }) => message) };
}

// Takes half a minute, so this file has no other test and runs in parallel. `db/embedded.test.ts` covers the reasons in
// the log.
test.if(LONG)("a stopping service exits 1 if it cannot stop its embedded database", async () => {
	const roles = ["all", "gateway", "console"];
	for (const { exitCode, said } of await Promise.all(roles.map(stopWithHungDatabase))) {
		expect(said).toContain("the embedded PostgreSQL did not stop in time: leaving it running");
		expect(exitCode).toBe(1);
	}
});
