import { describe, expect, test } from "bun:test";
import { inputLines, LINE_BYTES_MAX } from "../../src/batch/batch-line.ts";
import { LINES_MAX, PROBLEMS_MAX, validateInput } from "../../src/batch/validate.ts";
import { modelOver, snapshotOf } from "../support/upstream-catalog.ts";
import { chatLine } from "./batch-service.ts";

const MB = 1024 * 1024;
const batch = { rateCard: null };
const catalog = snapshotOf(
	modelOver([], { id: "test-model", aliases: ["nick"], modes: new Set(["chat"]), batch }),
	modelOver([], { id: "other", batch }),
	modelOver([], { id: "unbatched" }),
	modelOver([], { id: "embedder", kind: "embedding", modes: new Set(), batch }),
);
const snapshot = { ...catalog, aliases: new Map([["nick", "test-model"]]) };
const never = new AbortController().signal;

function streamOf(text: string, pieceBytes = 7): ReadableStream<Uint8Array> {
	const bytes = new TextEncoder().encode(text);
	let at = 0;
	return new ReadableStream({
		pull(controller) {
			if (at >= bytes.length) return controller.close();
			controller.enqueue(bytes.slice(at, at + pieceBytes));
			at += pieceBytes;
		},
	});
}
const check = (text: string, endpoint: Parameters<typeof validateInput>[1] = "/v1/chat/completions") =>
	validateInput(streamOf(text, 4096), endpoint, snapshot, never);
async function problemsOf(text: string, endpoint: Parameters<typeof validateInput>[1] = "/v1/chat/completions") {
	const result = await check(text, endpoint);
	return result.ok ? [] : result.problems.map(({ code, line, param }) => [code, line, param] as const);
}
const lineWith = (change: Record<string, unknown>) => JSON.stringify({ ...JSON.parse(chatLine("a")), ...change });

describe("the parser of an input file", () => {
	test("finds lines in chunks of any size, with any line end, numbered from 1", async () => {
		const text = "\uFEFFone\r\n\n  \ntwö\nthree";
		for (const piece of [1, 2, 3, 5, 1000]) {
			const lines = [];
			for await (const { line, text: found } of inputLines(streamOf(text, piece))) lines.push([line, found]);
			expect(lines).toEqual([
				[1, "one"],
				[4, "twö"],
				[5, "three"],
			]);
		}
	});

	test("skips a line that is too long without keeping it in memory", async () => {
		const lines = [];
		const long = "x".repeat(LINE_BYTES_MAX + 1);
		for await (const { line, text, bytes } of inputLines(streamOf(`a\n${long}\nb`, MB)))
			lines.push([line, text, bytes]);
		expect(lines).toEqual([
			[1, "a", 1],
			[2, undefined, LINE_BYTES_MAX + 1],
			[3, "b", 1],
		]);
	});
});

describe("the check of a batch's input file", () => {
	test("finds the model, under any of its names, and the number of lines", async () => {
		expect(await check(`${chatLine("a")}\n\n${chatLine("b", "b", { model: "nick" })}`)).toEqual({
			ok: true,
			model: "test-model",
			total: 2,
		});
	});

	test("reports code, line and field of each mistake", async () => {
		const cases: [string, readonly [string, number | null, string | null]][] = [
			["{", ["invalid_json_line", 1, null]],
			["[1]", ["invalid_json_line", 1, null]],
			[`${"[".repeat(500)}${"]".repeat(500)}`, ["invalid_json_line", 1, null]],
			[lineWith({ custom_id: undefined }), ["missing_required_parameter", 1, "custom_id"]],
			[lineWith({ custom_id: 7 }), ["missing_required_parameter", 1, "custom_id"]],
			[lineWith({ custom_id: "x".repeat(600) }), ["invalid_request", 1, "custom_id"]],
			[lineWith({ method: undefined }), ["missing_required_parameter", 1, "method"]],
			[lineWith({ method: "GET" }), ["invalid_method", 1, "method"]],
			[lineWith({ url: undefined }), ["missing_required_parameter", 1, "url"]],
			[lineWith({ url: "/v1/completions" }), ["url_mismatch", 1, "url"]],
			[lineWith({ body: "text" }), ["missing_required_parameter", 1, "body"]],
			[lineWith({ body: {} }), ["missing_required_parameter", 1, "body.model"]],
			[chatLine("a", "a", { stream: true }), ["invalid_request", 1, "body.stream"]],
			[chatLine("a", "a", { model: "nobody" }), ["model_not_found", 1, "body.model"]],
			[chatLine("a", "a", { model: "unbatched" }), ["unsupported_mode", 1, "body.model"]],
			[chatLine("a", "a", { model: "embedder" }), ["unsupported_mode", 1, "body.model"]],
			[`${chatLine("a")}\n${chatLine("b", "b", { model: "other" })}`, ["model_mismatch", 2, "body.model"]],
			[`${chatLine("a")}\n${chatLine("b")}\n${chatLine("a")}`, ["duplicate_custom_id", 3, "custom_id"]],
			["", ["empty_file", null, "input_file_id"]],
			["\n\n  \n", ["empty_file", null, "input_file_id"]],
		];
		for (const [text, problem] of cases) expect(await problemsOf(text)).toEqual([problem]);
	});

	test("reports at most a hundred mistakes", async () => {
		expect((await problemsOf(`{\n${chatLine("a")}\n{`)).map(([, line]) => line)).toEqual([1, 3]);
		expect(await problemsOf("{\n".repeat(1_000))).toHaveLength(PROBLEMS_MAX);
	});

	test("limits the number of lines and of inputs to embed", async () => {
		const [before, behind] = chatLine("?", "x").split("?");
		const many = (count: number) => Array.from({ length: count }, (_, at) => `${before}n${at}${behind}`).join("\n");
		expect((await problemsOf(many(LINES_MAX + 1)))[0]).toEqual(["too_many_tasks", LINES_MAX + 1, null]);
		const inputs = (count: number, id: string) =>
			lineWith({ custom_id: id, url: "/v1/embeddings", body: { model: "embedder", input: Array(count).fill("x") } });
		expect(await problemsOf(`${inputs(25_000, "a")}\n${inputs(25_000, "b")}`, "/v1/embeddings")).toEqual([]);
		expect(await problemsOf(`${inputs(25_000, "a")}\n${inputs(25_001, "b")}`, "/v1/embeddings")).toEqual([
			["too_many_inputs", 2, "body.input"],
		]);
	}, 20_000);
});

describe("the check of an input file of 128 MB", () => {
	/**
	 * An input that repeats `piece` up to this many bytes. Collects garbage in between, so that memory in use can be
	 * measured.
	 */
	function endless(piece: Uint8Array, bytes: number): ReadableStream<Uint8Array> {
		let left = bytes;
		let sinceGc = 0;
		return new ReadableStream({
			pull(controller) {
				if (left <= 0) return controller.close();
				left -= piece.length;
				sinceGc += piece.length;
				if (sinceGc >= 16 * MB) {
					Bun.gc(true);
					sinceGc = 0;
				}
				controller.enqueue(piece.slice());
			},
		});
	}

	test("reports a line of 128 MB and never holds the whole line in memory", async () => {
		Bun.gc(true);
		const before = process.memoryUsage().rss;
		const piece = new TextEncoder().encode("x".repeat(512 * 1024));
		const result = await validateInput(endless(piece, 128 * MB), "/v1/chat/completions", snapshot, never);
		expect(result).toMatchObject({ ok: false, problems: [{ code: "line_too_long", line: 1 }] });
		expect(process.memoryUsage().rss - before).toBeLessThan(80 * MB);
	}, 20_000);
});
