import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { explain } from "../../src/cli/explain.ts";
import { migrate } from "../../src/db/migrate.ts";
import { untilEnd } from "../support/at-end.ts";
import { createEmptyDatabase } from "../support/database.ts";

const database = await createEmptyDatabase();
untilEnd({ stop: () => database.drop() });

function changed(part: Partial<URL>): string {
	return Object.assign(new URL(database.url), part).href;
}

test.each([
	["a port at which nobody listens", changed({ port: "1" }), "Start PostgreSQL, or set host and port"],
	["a database that is not there", changed({ pathname: "/nowhere" }), "Make the database"],
	["a host that has no name", changed({ hostname: "nowhere.invalid" }), "Set the host of DATABASE_URL right"],
	["a user that is not let in", changed({ username: "nobody", password: "x" }), "DATABASE_URL right"],
])("a start says in one line what to do about %s", async (_, url, remedy) => {
	const error = await migrate({ log: silentLog }, url).then(
		() => undefined,
		(thrown) => thrown,
	);
	const { message } = explain(error);
	expect(message).toStartWith("the database: ");
	expect(message).toContain(remedy);
	expect(message).not.toContain("\n");
});

test("of a server that is on its way up nobody is told that DATABASE_URL is wrong", () => {
	const error = Object.assign(new Error("the database system is starting up"), { code: "57P03" });
	expect(explain(error).message).toContain("Wait until it has started");
});
