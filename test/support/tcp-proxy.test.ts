import { expect, test } from "bun:test";
import { systemClock, withDeadline } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createStatements } from "../../src/db/statements.ts";
import { createEmptyDatabase, withDatabase } from "./database.ts";
import { withTcpProxy } from "./tcp-proxy.ts";
import { waitFor } from "./wait.ts";

const db = await withDatabase();
const address = new URL(db.url);
const proxy = withTcpProxy({ hostname: address.hostname, port: Number(address.port) });

test("a connection frozen during sign-in does not delay making other databases", async () => {
	const goOn = proxy.hold("to client", /^signing in$/);
	const statements = createStatements(
		{ clock: systemClock, log: silentLog },
		{
			url: Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href,
			applicationName: "signing in",
			connectionsMax: 1,
			statementDeadlineMs: 20_000,
		},
	);
	const asked = statements`select 1`.catch(() => "silent");
	const isAsked = async () =>
		(await db.sql`select 1 from pg_stat_activity where state = 'starting' and wait_event = 'ClientRead'`).length > 0;
	await waitFor(isAsked, "the server to ask for the password");
	for (const connection of proxy.connections()) connection.freeze();
	goOn();
	const made = createEmptyDatabase().then((one) => one.drop());
	await withDeadline(systemClock, made, 15_000, () => new Error("nobody can make a database"));
	await statements.end();
	expect(await asked).toBe("silent");
});
