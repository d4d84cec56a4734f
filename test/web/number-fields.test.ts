import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const WEB = join(import.meta.dir, "../../src/web");

test("the number fields of all pages refuse a minus sign", () => {
	const fields = [...new Glob("**/*.tsx").scanSync(WEB)].flatMap((path) =>
		[...readFileSync(join(WEB, path), "utf8").matchAll(/<NumberInput$.*?\/>/gms)].map(([field]) => ({ path, field })),
	);
	expect(fields.length).toBeGreaterThan(2);
	expect(fields.filter(({ field }) => !field.includes("allowNegative={false}")).map(({ path }) => path)).toEqual([]);
});
