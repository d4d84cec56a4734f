import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { explainError } from "../../src/cli/explain.ts";
import { migrate } from "../../src/db/migrate.ts";
import { AnswerLost, connectionEndedError, DatabaseBusy, DatabaseTimeout } from "../../src/db/outage.ts";
import { untilEnd } from "../support/at-end.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { testPostgres, uniqueName } from "../support/postgres.ts";

const database = await createEmptyDatabase();
untilEnd({ stop: () => database.drop() });
const name = new URL(database.url).pathname.slice(1);

function changed(part: Partial<URL>): string {
	return Object.assign(new URL(database.url), part).href;
}

/** Creates a database role with `attributes`; returns its URL. */
async function roleUrl(attributes: string): Promise<string> {
	const { asAdmin } = await testPostgres();
	const username = uniqueName("role");
	await asAdmin(`create role ${username} password 'p' ${attributes}`);
	untilEnd({ stop: () => asAdmin(`drop role ${username}`) });
	return changed({ username, password: "p" });
}

const limited = await roleUrl("login connection limit 0");
const shut = await roleUrl("nologin");
const stranger = await roleUrl("login");
await (await testPostgres()).asAdmin(`revoke connect on database ${name} from public`);

test.each([
	["a port on which no server listens", changed({ port: "1" }), "Start PostgreSQL, or correct host and port"],
	["a database that does not exist", changed({ pathname: "/nowhere" }), "Create the database"],
	["an unknown host name", changed({ hostname: "nowhere.invalid" }), "Correct the host in DATABASE_URL"],
	[
		"a user that the server refuses",
		changed({ username: "nobody", password: "x" }),
		"Correct user and password in DATABASE_URL",
	],
	["a role that may not connect", limited, "alter role … connection limit"],
	["a role that may not sign in", shut, "alter role … login"],
	["a role that may not use the database", stranger, "grant connect on database"],
	["a server without TLS", changed({ search: "?sslmode=require" }), "does not support TLS"],
	["a parameter of another driver", changed({ search: "?pgbouncer=true" }), "Remove it from DATABASE_URL"],
])("a start says in one line what to do about %s", async (_, url, remedy) => {
	const error = await migrate({ log: silentLog }, url).then(
		() => undefined,
		(thrown) => thrown,
	);
	const { code, message } = explainError(error);
	expect(code).toBe("service_unavailable");
	expect(message).toStartWith("the database: ");
	expect(message).toContain(remedy);
	expect(message).not.toContain("\n");
});

test("a command that a database error ends says whether its statement took effect", () => {
	const of = {
		"The command may have taken effect": [new DatabaseTimeout("late"), new AnswerLost("no row")],
		"Nothing was changed: try again": [new DatabaseBusy("a row is held")],
		"The log of PostgreSQL says why it closed the connection": [connectionEndedError()],
	};
	for (const [said, errors] of Object.entries(of))
		for (const error of errors) {
			const { code, message } = explainError(error);
			expect([code, message]).toEqual(["service_unavailable", expect.stringContaining(said)]);
			expect(message).not.toContain("\n");
		}
});

test("the error of a command does not blame DATABASE_URL while the database starts", () => {
	const error = Object.assign(new Error("the database system is starting up"), { code: "57P03" });
	expect(explainError(error).message).toContain("Wait until PostgreSQL has started");
});

test.each([
	["28000", 'no pg_hba.conf entry for host "::1", user "u", database "d", no encryption', "?sslmode=require"],
	["28000", 'pg_hba.conf rejects connection for host "::1", user "u", database "d", SSL encryption', "in pg_hba.conf."],
	["28000", 'role "u" does not exist', "Create the role"],
	["53300", "sorry, too many clients already", "Raise max_connections"],
	["53300", 'too many connections for database "d"', "alter database … connection limit"],
	["55000", 'database "d" is not currently accepting connections', "allow_connections true"],
	["25006", "cannot execute INSERT in a read-only transaction", "Point DATABASE_URL at the primary"],
	["42501", "permission denied for sequence recall_ticket", "grant usage on all sequences"],
	["DEPTH_ZERO_SELF_SIGNED_CERT", "self signed certificate", "Set sslrootcert"],
	["08P01", "no more connections allowed (max_client_conn)", "Raise max_client_conn"],
	["08P01", "password authentication failed", "in the pooler"],
	["08P01", 'database "d" does not exist', "to the pooler"],
	["EAI_AGAIN", "getaddrinfo EAI_AGAIN db", "name servers"],
])("the advice on database error %s depends on its message: %s", (code, message, remedy) => {
	const said = explainError(Object.assign(new Error(message), { code })).message;
	expect(said).toStartWith(`the database: ${message}. `);
	expect(said).toContain(remedy);
});
