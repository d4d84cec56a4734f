import { assert } from "../base/assert.ts";
import type { ListPage } from "../db/page.ts";
import type { CommandOutput } from "./command.ts";
import { printable } from "./printable.ts";

/** Formats rows as aligned columns below a header; src/README.md says why no library does this. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
	const lines = [head, ...rows.map((row) => row.map(printable))];
	const widths = head.map((_, column) => Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ""))));
	const pad = (cell: string, column: number) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell));
	return lines.map((line) => line.map(pad).join("  ").trimEnd()).join("\n");
}

/**
 * Output of a list command: JSON `{"data":[…],"next":…}`, or a table and the option for the next page. Each of
 * `columns` is a field of the row's JSON (`LAST USED` is `last_used` or `last_used_at`), or a text that `cells`
 * computes.
 */
export function listOutput<Row>(
	page: ListPage<Row>,
	json: (row: Row) => Record<string, unknown>,
	columns: readonly string[],
	cells: Readonly<Record<string, (row: Row) => string>> = {},
): CommandOutput {
	const data = page.items.map(json);
	const rows = page.items.map((row, at) =>
		columns.map((column) => cells[column]?.(row) ?? textOf(fieldOf(data[at] ?? {}, column))),
	);
	const more =
		page.next === null
			? ""
			: `

More: --after ${page.next}`;
	return {
		json: { data, next: page.next },
		text: (rows.length === 0 ? "No entries." : formatTable(columns, rows)) + more,
	};
}

function fieldOf(data: Record<string, unknown>, column: string): unknown {
	const name = column.toLowerCase().replace("-", "").replace(" ", "_");
	const known = [name, `${name}_at`, `${name}_usd`].find((field) => field in data);
	assert(known !== undefined, `a row has a field for ${column}`);
	return data[known];
}

function textOf(value: unknown): string {
	if (value === null) return "never";
	if (typeof value === "boolean") return value ? "yes" : "no";
	return Array.isArray(value) ? value.join(",") : String(value);
}
