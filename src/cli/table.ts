import type { Listed } from "../db/page.ts";
import type { Output } from "./command.ts";

/** Rows of texts in aligned columns below a head. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
	const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
	const line = (cells: readonly string[]) =>
		cells
			.map((cell, column) => cell.padEnd(widths[column] ?? 0))
			.join("  ")
			.trimEnd();
	return [head, ...rows].map(line).join("\n");
}

/** A page of a list: `{"data":[…],"next":…}`, or a table and how to go on. */
export function listOutput<Row>(
	page: Listed<Row>,
	head: readonly string[],
	json: (row: Row) => Record<string, unknown>,
	cells: (row: Row) => readonly string[],
): Output {
	const table = page.items.length === 0 ? "There are none." : formatTable(head, page.items.map(cells));
	const more = page.next === null ? "" : `\n\nMore: --after ${page.next}`;
	return { json: { data: page.items.map(json), next: page.next }, text: table + more };
}

export function isoOrNull(ms: number | null): string | null {
	return ms === null ? null : new Date(ms).toISOString();
}
