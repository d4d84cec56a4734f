import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TOOLS } from "../../src/web/snippets/tools.ts";

/** A row of the table: tool, versions, method, day, result. */
export type Row = readonly [id: string, versions: string, way: string, day: string, outcome: string];

/** The result in a successful row of the table. */
export const SUCCESS_RESULT = "streamed, charged once";
export const NOT_RUN = "not run";

const PATH = join(import.meta.dir, "results.md");

export function readRows(): Map<string, Row> {
	const lines = existsSync(PATH) ? readFileSync(PATH, "utf8").split("\n") : [];
	const cells = lines.filter((line) => line.startsWith("| ")).map((line) => line.slice(2, -2).split(" | "));
	return new Map(
		cells
			.filter((row) => row.length === 5 && row[0] !== "tool")
			.map((row) => [row[0] as string, row as unknown as Row]),
	);
}

export function writeRows(rows: ReadonlyMap<string, Row>): void {
	const shown = TOOLS.map(({ id }) => rows.get(id) ?? [id, "–", "–", "–", NOT_RUN]);
	writeFileSync(
		PATH,
		`# Code samples of the pages, run with the real tools

Written by \`bun run snippets\`. Each tool was installed from its registry into an empty home folder. It ran the
sample from the page of a new key unchanged, with the service's address and that key.

| tool | versions | how | day | outcome |
|---|---|---|---|---|
${shown.map((row) => `| ${row.join(" | ")} |`).join("\n")}
`,
	);
}
