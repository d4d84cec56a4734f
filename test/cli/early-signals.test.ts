import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../support/at-end.ts";
import { PROGRAM } from "./run-cli.ts";

/** Signals that only a running service handles. During a start they must have no effect. */

const SIGNALS = { all: ["SIGHUP", "SIGUSR1", "SIGUSR2"], gateway: ["SIGHUP", "SIGUSR1"] } as const;

/** Starts `role` with a database that accepts connections but never answers. */
async function startBeforeMuteDatabase(role: string) {
	const asked = Promise.withResolvers<void>();
	const database = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { open: () => asked.resolve(), data() {} } });
	const child = Bun.spawn([...PROGRAM, "serve", "--role", role], {
		cwd: temporaryFolder(),
		env: {
			PATH: process.env.PATH ?? "",
			PORT: "0",
			DATA_DIR: join(temporaryFolder(), "data"),
			DATABASE_URL: `postgres://nobody@127.0.0.1:${database.port}/none`,
		},
		stdout: "ignore",
		stderr: "pipe",
	});
	await Promise.race([asked.promise, child.exited]);
	return { child, database };
}

test.each(Object.entries(SIGNALS))(
	"a starting process of role %s is not ended by signals %p",
	async (role, signals) => {
		const { child, database } = await startBeforeMuteDatabase(role);
		for (const signal of signals) child.kill(signal);
		database.stop(true);
		const said = await new Response(child.stderr).text();
		expect(said).toContain("error: the database");
		expect([await child.exited, child.signalCode]).toEqual([1, null]);
	},
	60_000,
);

test.each(["all", "gateway", "console"])(
	"a process of role %s that waits for its database exits with 0 on SIGTERM",
	async (role) => {
		const { child, database } = await startBeforeMuteDatabase(role);
		child.kill("SIGTERM");
		expect([await child.exited, child.signalCode]).toEqual([0, null]);
		expect(await new Response(child.stderr).text()).not.toContain("error");
		database.stop(true);
	},
	60_000,
);
