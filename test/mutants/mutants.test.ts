import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { withDatabase } from "../support/database.ts";
import { mutated, mutationsOf } from "./mutations.ts";
import { sqlMutations } from "./sql-mutants.ts";

const ROOT = join(import.meta.dir, "../..");
const db = await withDatabase();

test("each SQL mutant's text occurs once and its function is valid", async () => {
	const refused: string[] = [];
	const mutations = sqlMutations(ROOT);
	expect(mutations.length).toBeWithin(40, 61);
	for (const mutation of mutations) {
		const text = mutated(readFileSync(join(ROOT, mutation.file), "utf8"), mutation);
		await db.sql
			.unsafe(`set search_path = ${FUNCTION_SET}, public; ${text}`)
			.catch((error) => refused.push(`${mutation.change}: ${error}`));
	}
	expect(refused).toEqual([]);
}, 60_000);

test("each operator changes its place, not texts, types, logs or assertions", () => {
	const text = `function f(a: 1 | 2, deps: { log: Log }): void {
	if (a >= b && c) give(a + 1);
	deps.log.info("x");
	assert(a, "y");
	shown = "a" + a;
	left -= 2;
}
`;
	const changes = mutationsOf("f.ts", text).map((mutation) => {
		const changed = mutated(text, mutation) ?? "";
		const at = changed.split("\n").findIndex((line, index) => line !== text.split("\n")[index]);
		return changed.split("\n")[at]?.trim();
	});
	expect(changes).toEqual([
		"return;",
		"if (a < b && c) give(a + 1);",
		"if (a >= b || c) give(a + 1);",
		"if (a >= b && c) ;",
		"if (a >= b && c) give(a - 1);",
		";",
		";",
		"left += 2;",
	]);
});
