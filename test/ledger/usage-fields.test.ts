import { expect, test } from "bun:test";
import { onlyRow } from "../../src/db/outage.ts";
import { type AdmittedEvent, SettledColumns } from "../../src/ledger/event.ts";
import { type Outcome, settledEvent } from "../../src/ledger/outcome.ts";
import { USAGE_FIELD_NAMES, usageField } from "../../src/ledger/usage-fields.ts";
import { withDatabase } from "../support/database.ts";
import { usd } from "./fixture.ts";

const db = await withDatabase();

const ARRAYS: Readonly<Record<string, string>> = { "text[]": "text", timestamptz: "double precision" };

test("lease_settle takes one array per field, in the table's order", async () => {
	const rows = await db.sql<{ said: string }[]>`select pg_get_function_arguments('lease_settle'::regproc) as said`;
	const types = onlyRow(rows)
		.said.split(", ")
		.map((argument) => argument.slice(argument.indexOf(" ") + 1));
	const fields = USAGE_FIELD_NAMES.map((name) => usageField(name).type).map((type) => `${ARRAYS[type] ?? type}[]`);
	expect(types).toEqual(["text", "integer", ...fields, "json"]);
});

test("each field of a usage event has a database column of its type", async () => {
	const rows = await db.sql`
		select a.attname as name, format_type(a.atttypid, null) as type, a.attnotnull as required
		from pg_attribute a where a.attrelid = 'usage_event'::regclass`;
	for (const field of USAGE_FIELD_NAMES.map(usageField)) {
		const type = field.type === "timestamptz" ? "timestamp with time zone" : field.type;
		const required = !(field.nullable || field.optional);
		expect(rows).toContainEqual({ name: field.column, type, required });
	}
});

test("each field of a settled usage event is filled from the field's source", () => {
	const from = (known: string) =>
		Object.fromEntries(USAGE_FIELD_NAMES.map((name) => [name, usageField(name).known === known ? name : "wrong"]));
	const event = settledEvent(
		from("admission") as unknown as AdmittedEvent,
		from("end") as unknown as Outcome,
		...([usd(3), usd(2), usd(1)] as const),
	);
	const names = Object.fromEntries(USAGE_FIELD_NAMES.map((name) => [name, name]));
	expect<unknown>(event).toEqual({ ...names, reserved: 3, charged: 2, off: 1 });
	expect([...SettledColumns.of([event])]).toEqual([event]);
});
