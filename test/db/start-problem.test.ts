import { expect, test } from "bun:test";
import { join } from "node:path";
import { parseStartProblem } from "../../src/db/postgres-start.ts";
import { FROM_SOURCE } from "../cli/run-cli.ts";
import { temporaryFolder } from "../support/at-end.ts";

test("a failed start of the embedded server names the remedy for a known problem", async () => {
	const child = Bun.spawn(["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", ...FROM_SOURCE, "migrate"], {
		cwd: temporaryFolder(),
		env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", DATA_DIR: join(temporaryFolder(), "data") },
		stdio: ["ignore", "ignore", "pipe"],
	});
	const said = await new Response(child.stderr).text();
	expect(await child.exited).toBe(1);
	const lines = said.trimEnd().split("\n");
	expect(lines).toHaveLength(2);
	expect(lines[0]).toStartWith("there is no database yet: creating an embedded one in ");
	expect(lines[1]).toStartWith("error: The embedded PostgreSQL could not be initialised: it may open too few files");
	expect(lines[1]).toContain("FATAL:  insufficient file descriptors");
}, 60_000);

// Messages of PostgreSQL 18, captured in a container that has the problem.
test.each([
	["initdb: could not look up effective user ID 12345: user does not exist\n", "/etc/passwd"],
	[
		'2026-11-26 [7757] FATAL:  could not resize shared memory segment "/PostgreSQL.900754084" to 1048576 bytes: No space left on device\nAborted\n',
		"/dev/shm",
	],
	[
		'2026-11-26 [8782] FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes at block 9\n2026-11-26 [8782] HINT:  Check free disk space.\n',
		"disk of DATA_DIR",
	],
	['2026-11-26 [1] LOG:  could not fork "client backend" process: Resource temporarily unavailable\n', "pids.max"],
])("a failed start of the embedded server with the message %j names a remedy", (said, remedy) => {
	expect(parseStartProblem(said).remedy).toContain(remedy);
});

test("a failed start of the embedded server quotes an unknown problem's fatal line", () => {
	const said = "2026-11-26 LOG:  starting\n2026-11-26 FATAL:  something new\nchild process exited with exit code 1\n";
	expect(parseStartProblem(said)).toEqual({ remedy: undefined, line: "2026-11-26 FATAL:  something new" });
	expect(parseStartProblem("")).toEqual({ remedy: undefined, line: "" });
});
