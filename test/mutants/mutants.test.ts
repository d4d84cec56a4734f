import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { mutants } from "./list.ts";
import { mutate } from "./mutant.ts";
import { readResults } from "./results.ts";

const ROOT = join(import.meta.dir, "../..");

test("every mutant still applies: its line stands once in the source, and it changes it", () => {
	expect(mutants.length).toBeGreaterThanOrEqual(60);
	for (const mutant of mutants)
		expect(mutate(ROOT, mutant)).not.toBe(mutate(ROOT, { ...mutant, after: mutant.before }));
});

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
