import { expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./at-end.ts";
import { memoryFolder } from "./memory-folder.ts";

test("a folder in memory is found again by its owner, is nobody else's, and goes after its owner has gone", () => {
	const memory = temporaryFolder();
	const [first, second] = ["first", "second"].map((name) => join(memory, name)) as [string, string];
	for (const owner of [first, second]) mkdirSync(owner);
	const folder = memoryFolder(first, memory) as string;
	expect(memoryFolder(first, memory)).toBe(folder);
	expect(memoryFolder(second, memory)).not.toBe(folder);
	expect(existsSync(folder)).toBe(true);
	rmSync(first, { recursive: true });
	memoryFolder(second, memory);
	expect(existsSync(folder)).toBe(false);
	expect(memoryFolder(second, join(memory, "none"))).toBeUndefined();
});
