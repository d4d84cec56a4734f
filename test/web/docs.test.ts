import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DOCS = join(import.meta.dir, "../../src/web/docs");
const pages = readdirSync(join(DOCS, "en")).sort();
const read = (language: string, page: string): string => readFileSync(join(DOCS, language, page), "utf8");
/** Returns the words of each block, without its code and links. */
const prose = (text: string): string[] =>
	text
		.replace(/^```[\s\S]*?^```$/gm, "")
		.split(/\n{2,}/)
		.map((block) => block.replace(/`[^`]*`|\]\([^)]*\)/g, "").trim())
		.filter((block) => /\p{L}{2}/u.test(block));

describe("the docs in German", () => {
	test("have the same pages as the docs in English", () => expect(readdirSync(join(DOCS, "de")).sort()).toEqual(pages));

	test.each(pages)("%s has the blocks, code, links and values of the English page", (page) => {
		const marks = (text: string) => [
			text.match(/^(#+|```\w*$|[-|]|\d\.)/gm),
			text.match(/^```[\s\S]*?^```$/gm),
			text.match(/`[^`\n]+`|\]\([^)]*\)|\{\{\w+\}\}/g)?.sort(),
		];
		expect(marks(read("de", page))).toEqual(marks(read("en", page)));
	});

	test.each(pages)("%s has no block that is still English", (page) => {
		const english = new Set(prose(read("en", page)));
		expect(prose(read("de", page)).filter((block) => english.has(block))).toEqual([]);
	});
});
