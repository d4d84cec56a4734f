import { expect, test } from "bun:test";
import { checkBatch, readBatch } from "../../src/web/batch-check.ts";

const line = (id: unknown, more: object = {}) =>
	JSON.stringify({ custom_id: id, method: "POST", url: "/v1/embeddings", body: {}, ...more });

test("counts the lines of a valid file and reads its endpoint", () => {
	expect(checkBatch(`${line("a")}\n\n${line("b")}\r\n`)).toEqual({
		lines: 2,
		endpoint: "/v1/embeddings",
		problems: [],
	});
});

test("reports problems with their lines, the first five only", () => {
	const problemsOf = (...lines: string[]) => checkBatch(lines.join("\n")).problems;
	expect(problemsOf("")).toEqual(["The file is empty."]);
	expect(problemsOf(line("a"), "[]", "{")).toEqual([
		"Line 2: this is no JSON object.",
		"Line 3: this is no JSON object.",
	]);
	expect(problemsOf(line("a"), line("a"), line(7))).toEqual([
		"Line 2: an earlier line has the same custom_id.",
		"Line 3: it has no custom_id.",
	]);
	expect(problemsOf(line("a"), line("b", { url: "/v1/completions" }))).toEqual([
		"Line 2: its url is not that of the first line.",
	]);
	expect(problemsOf(line("a", { method: "GET" }))).toEqual(["Line 1: its method must be POST."]);
	expect(problemsOf(line("a", { body: "x" }))).toEqual(["Line 1: it has no body."]);
	expect(problemsOf(line("a", { url: "/v1/rerank" }))[0]).toContain("must be one of");
	expect(problemsOf(...Array.from({ length: 100 }, () => "x"))).toHaveLength(5);
	expect(problemsOf(...Array.from({ length: 50_001 }, (_, at) => line(`${at}`)))).toHaveLength(1);
});

test("reports a file that cannot be read", async () => {
	const gone = () => Promise.reject(new DOMException("", "NotReadableError"));
	const file = Object.assign(new File(["{}"], "gone.jsonl"), { text: gone });
	expect(await readBatch(file)).toEqual({
		lines: 0,
		endpoint: null,
		problems: ["The browser cannot read this file. Choose it again."],
	});
});
