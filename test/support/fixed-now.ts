import { assert } from "../../src/base/assert.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createStatements, type Statements } from "../../src/db/statements.ts";
import { atEnd } from "./at-end.ts";
import type { TestDatabase } from "./database.ts";

/**
 * Returns statements with a fixed `now()`, which a schema before pg_catalog defines: for tests of the present month or
 * day, which might end during the test.
 */
export async function statementsWithFixedNow({ sql, url }: TestDatabase, atMs: number): Promise<Statements> {
	await sql`create schema fixed`;
	await sql.unsafe(
		`create function fixed.now() returns timestamptz language sql stable as $$ select timestamptz '${new Date(atMs).toISOString()}' $$`,
	);
	const before = "search_path=";
	assert(url.includes(before), "the address of a migrated database says where its functions are");
	const statements = createStatements(
		{ clock: systemClock, log: silentLog },
		{
			url: url.replace(before, `${before}fixed%2Cpg_catalog%2C`),
			connectionsMax: 8,
			statementDeadlineMs: 10_000,
			applicationName: "test fixed",
		},
	);
	atEnd(() => statements.end());
	return statements;
}
