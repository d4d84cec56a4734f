import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { errorRecord, errorText } from "../../src/base/error-record.ts";
import { Fault } from "../../src/base/fault.ts";
import { createLog } from "../../src/base/log.ts";
import { toFault } from "../../src/gateway/error-body.ts";
import { withDatabase } from "../support/database.ts";

/** A value of a failing statement. The log must contain the error's cause but never this value. */

const CANARY = "c4n4ry";
const db = await withDatabase();
await db.sql`create table canary_store (id integer primary key, name text not null unique, short varchar(5), kind integer check (kind < 5), at timestamptz, ref uuid, data jsonb, bytes bytea, days interval, list integer[])`;
await db.sql`insert into canary_store (id, name) values (1, ${CANARY})`;
await db.sql`create function canary_raise(v text) returns void language plpgsql as $$ begin raise exception 'no % here', v using detail = v, hint = v, errcode = 'P0001'; end $$`;
await db.sql`create function canary_deep(v text) returns void language plpgsql as $$ begin perform ('x' || v)::integer; end $$`;
await db.sql`create function canary_text(v text) returns void language plpgsql as $$ begin execute 'select ' || v; end $$`;

/** Failing SQL with its SQLSTATE and the value that must not be logged. */
const STATEMENTS: readonly (readonly [state: string, text: string, value: string])[] = [
	["23505", "insert into canary_store (id, name) values (2, $1)", CANARY],
	["23502", "insert into canary_store (id, short) values (3, left($1, 5))", CANARY],
	["23514", "insert into canary_store (id, name, kind) values (4, $1, 9)", `${CANARY}2`],
	["22001", "insert into canary_store (id, name, short) values (5, 'b', $1)", CANARY],
	["22P02", "select ($1::text)::integer", CANARY],
	["22P02", "select ($1::text)::uuid", `${CANARY}"with"quotes`],
	["22P02", "select ($1::text)::jsonb", `{"a": ${CANARY}}`],
	["22P02", "select ($1::text)::integer[]", `{${CANARY}}`],
	["22007", "select ($1::text)::timestamptz", CANARY],
	["22007", "select ($1::text)::interval", `${CANARY}\n"`],
	["22023", "select timezone($1::text, now())", CANARY],
	["22023", "select decode('00', $1::text)", CANARY],
	["22023", "select set_config('work_mem', $1::text, true)", CANARY],
	["2201B", "select 'x' ~ $1::text", `${CANARY}(`],
	["42704", "select set_config($1::text, 'x', true)", CANARY],
	["42P01", "select ($1::text)::regclass", CANARY],
	["42883", "select ($1::text)::regprocedure", `${CANARY}(text)`],
	["P0001", "select canary_raise($1::text)", CANARY],
	["22P02", "select canary_deep($1::text)", CANARY],
	["42703", "select canary_text($1::text)", CANARY],
	["42601", "select canary_text($1::text)", `${CANARY} ${CANARY} 'x`],
];

async function errorOf(work: () => Promise<unknown>): Promise<Error> {
	try {
		await work();
	} catch (error) {
		return error as Error;
	}
	throw new Error("it did not fail");
}

function written(error: Error, asText: Record<string, unknown> = {}): string {
	const lines: string[] = [];
	for (const terminal of [undefined, { colour: true }]) {
		const log = createLog({
			level: "debug",
			write: (line) => void lines.push(line),
			...(terminal ? { terminal } : {}),
		});
		log.error("failed", { error, deep: { list: [error] }, ...asText });
		log.error("failed", { error: toFault(error) });
		const fault = new Fault("service_unavailable", "away", { private: errorText(error), cause: error });
		log.info("refused", { error: fault });
	}
	return [...lines, errorText(error), JSON.stringify(errorRecord(error))].join("\n");
}

test("a database driver's error is recorded with its SQLSTATE and without values", async () => {
	for (const [state, text, value] of STATEMENTS) {
		const error = await errorOf(() => db.sql.unsafe(text, [value]));
		expect([text, (error as { code?: unknown }).code]).toEqual([text, state]);
		expect(written(error)).toContain(state);
		expect(written(error)).not.toContain(CANARY);
	}
});

test("a query builder's error is recorded without the statement's values", async () => {
	for (const [state, text, value] of STATEMENTS) {
		const [before = "", after = ""] = text.split("$1");
		const query = sql`${sql.raw(before)}${value}${sql.raw(after)}`;
		for (const work of [() => db.tx.execute(query), () => db.tx.transaction((tx) => tx.execute(query))]) {
			const error = await errorOf(work);
			expect(error.message).toContain(CANARY);
			const text = written(error, { text: String(error), stack: error.stack });
			expect(text).toContain(state);
			expect(text).not.toContain(CANARY);
		}
	}
});

test("an error record contains the failure's table, constraint and position", async () => {
	const taken = errorRecord(await errorOf(() => db.sql`insert into canary_store (id, name) values (2, ${CANARY})`));
	expect(taken.about).toMatchObject({ table_name: "canary_store", constraint_name: "canary_store_name_key" });
	const raised = errorRecord(await errorOf(() => db.sql`select canary_raise(${CANARY})`));
	expect(raised.about?.place).toBe("PL/pgSQL function canary_raise(text) line 1 at RAISE");
	const cancelled = await errorOf(async () => {
		await db.sql.begin(async (tx) => {
			// With 1 ms, the timeout could pass before the statement starts; the server would then report a cancel by the
			// user.
			await tx`set local statement_timeout = 100`;
			await tx`select pg_sleep(10), ${CANARY}::text`;
		});
	});
	expect(errorRecord(cancelled).message).toBe("database error 57014: canceling statement due to statement timeout");
	expect(errorRecord(cancelled).stack).not.toContain(CANARY);
});

test("a database error in another language is recorded only by its SQLSTATE", () => {
	const error = Object.assign(new Error(`ungültige Eingabe ${CANARY}`), {
		name: "PostgresError",
		code: "22P02",
		severity: "ERROR",
		severity_local: "FEHLER",
	});
	expect(errorRecord(error).message).toBe("database error 22P02");
});
