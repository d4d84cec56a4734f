import type { Listed } from "../db/page.ts";
import type { Output } from "./command.ts";
import { shown } from "./shown.ts";

/** Formats rows as aligned columns below a head; see *Made by hand* in src/README.md. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
	const lines = [head, ...rows.map((row) => row.map(shown))];
	const widths = head.map((_, column) => Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ""))));
	const pad = (cell: string, column: number) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell));
	return lines.map((line) => line.map(pad).join("  ").trimEnd()).join("\n");
}

/** A page of a list: `{"data":[…],"next":…}`, or a table with the option for the next page. */
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
