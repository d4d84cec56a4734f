import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { withDatabase } from "../support/database.ts";
import { applyMutation } from "./mutations.ts";
import { sqlMutations } from "./sql-mutants.ts";

const ROOT = join(import.meta.dir, "../..");
const db = await withDatabase();

test("each SQL mutant replaces a text that occurs once and is a valid function", async () => {
	const refused: string[] = [];
	const mutations = sqlMutations(ROOT);
	expect(mutations.length).toBeWithin(40, 61);
	for (const mutation of mutations) {
		const text = applyMutation(readFileSync(join(ROOT, mutation.file), "utf8"), mutation);
		await db.sql
			.unsafe(`set search_path = ${FUNCTION_SET}, public; ${text}`)
			.catch((error) => refused.push(`${mutation.change}: ${error}`));
	}
	expect(refused).toEqual([]);
}, 60_000);
