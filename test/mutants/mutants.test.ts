import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { withDatabase } from "../support/database.ts";
import { mutants } from "./list.ts";
import { mutate } from "./mutant.ts";
import { readResults } from "./results.ts";

const ROOT = join(import.meta.dir, "../..");
const db = await withDatabase();

test("every mutant still applies: its line stands once in the source, and it changes it", () => {
	expect(mutants.length).toBeGreaterThanOrEqual(60);
	for (const mutant of mutants)
		expect(mutate(ROOT, mutant)).not.toBe(mutate(ROOT, { ...mutant, after: mutant.before }));
});

test("every mutant of a function is SQL that PostgreSQL takes: else any test would fail of it", async () => {
	const refused: string[] = [];
	for (const mutant of mutants.filter(({ file }) => file.endsWith(".sql"))) {
		const text = `set search_path = ${FUNCTION_SET}, public; ${mutate(ROOT, mutant)}`;
		await db.sql.unsafe(text).catch((error) => refused.push(`${mutant.breaks}: ${error}`));
	}
	expect(refused).toEqual([]);
}, 60_000);

test("a line that is not there, or there twice, is an error that names the mutant", () => {
	const mutant = { file: "cluster/gate.ts", breaks: "a rule", after: "", killers: [] };
	expect(() => mutate(ROOT, { ...mutant, before: "no such line" })).toThrow("a rule");
	expect(() => mutate(ROOT, { ...mutant, before: "clock.wallMs()" })).toThrow("a rule");
});

test("each breaks a rule of its own, and what should notice it is there", () => {
	expect(new Set(mutants.map(({ breaks }) => breaks)).size).toBe(mutants.length);
	for (const { breaks, killers, equivalent } of mutants) {
		expect({ breaks, killers: killers.length > 0 || equivalent !== undefined }).toEqual({ breaks, killers: true });
		for (const killer of killers) {
			const there = typeof killer === "number" || existsSync(join(ROOT, "test", `${killer}.test.ts`));
			expect({ breaks, killer, there }).toEqual({ breaks, killer, there: true });
		}
	}
});

test("the table has what became of each: killed, or equivalent for a reason", () => {
	const results = readResults();
	const open = mutants.filter(({ breaks }) => !["killed", "equivalent"].includes(results.get(breaks)?.verdict ?? ""));
	expect(open.map(({ breaks }) => breaks)).toEqual([]);
	expect([...results.keys()].filter((name) => !mutants.some(({ breaks }) => breaks === name))).toEqual([]);
});
