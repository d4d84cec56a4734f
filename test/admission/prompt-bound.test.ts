import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import {
	completionTokensEstimate,
	measureChat,
	promptTokensEstimate,
	promptTokensMax,
} from "../../src/admission/prompt-bound.ts";
import { LONG } from "../support/long-form.ts";
import { modelOver } from "../support/upstream-catalog.ts";
import { cpuMs } from "../support/wait.ts";

const RUNS = { numRuns: LONG ? 1_000 : 150 };
/** End of the tested code points. The short run leaves out higher ones, which never decompose. */
const CODES_END = LONG ? 0x110000 : 0x30000;
const model = modelOver([], { contextLength: 100_000_000, templateOverheadTokens: 64 });
const text = fc.oneof(
	fc.string(),
	fc.string({ unit: "grapheme", maxLength: 200 }),
	fc.string({ unit: "binary", maxLength: 300 }),
);
const part = fc.record({ type: fc.constant("text"), text });
const message = fc.record({
	role: fc.constantFrom("system", "user", "assistant", "tool"),
	content: fc.oneof(text, fc.array(part, { maxLength: 4 })),
});
const tools = fc.array(
	fc.record({
		type: fc.constant("function"),
		function: fc.record({ name: text, description: text, parameters: fc.object({ maxDepth: 3 }) }),
	}),
	{ maxLength: 3 },
);

type Message = { role: string; content: string | { text: string }[] };

/** Maximum tokens that a byte-level vocabulary can use: one per byte, plus the marks of a ChatML template. */
function byteTokens(messages: readonly Message[], rendered: readonly unknown[]): number {
	let tokens = 0;
	for (const { role, content } of messages) {
		const body = typeof content === "string" ? content : content.map((each) => each.text).join("");
		// A message is rendered as <|im_start|> role \n … <|im_end|> \n, which adds four tokens.
		tokens += 4 + Buffer.byteLength(role) + Buffer.byteLength(body);
	}
	for (const value of rendered) tokens += Buffer.byteLength(JSON.stringify(value));
	return tokens + 3;
}

describe("the token bound of a prompt that Unicode normalization makes longer", () => {
	const bound = (content: string, of = model) => promptTokensMax(measureChat([{ role: "user", content }], [], of), of);
	const character = fc.integer({ min: 0x80, max: 0x10ffff }).filter((code) => code < 0xd800 || code > 0xdfff);
	const composed = fc.constantFrom(0xe4, 0x1ea1, 0x304c, 0xac01, 0xff76, 0xfdfa, 0x16d68, 0x1d160);
	const mark = fc.constantFrom(0x300, 0x315, 0x323, 0x344, 0x1161, 0x11a8, 0x3099, 0xff9e, 0x9be, 0x16d67, 0x1d165);

	test("covers the tokens of the normalized prompt", () => {
		expect(bound("\u{FDFA}".repeat(100))).toBeGreaterThanOrEqual(3_300);
		// The mark U+0323 takes the place of the diaeresis: four bytes become five.
		expect(bound("\u{E4}\u{323}".repeat(1_000))).toBeGreaterThanOrEqual(5_000);
		const characters = fc.array(fc.oneof(character, composed, mark), { maxLength: 300 });
		fc.assert(
			fc.property(characters, fc.nat(40_000), (codes, ascii) => {
				const content = "a".repeat(ascii) + String.fromCodePoint(...codes) + "b".repeat(ascii % 7);
				const most = Math.max(Buffer.byteLength(content), Buffer.byteLength(content.normalize("NFKC")));
				expect(bound(content)).toBeGreaterThanOrEqual(most);
				expect(bound(content)).toBeLessThan((most * 17) / 16 + 1_500);
			}),
			RUNS,
		);
	});

	test("is computed without normalizing a text that is mostly ASCII", () => {
		const bytesOf = (text: string) => Buffer.byteLength(text);
		for (let code = 0; code < CODES_END; code += 1) {
			if (code >= 0xd800 && code < 0xe000) continue;
			const character = String.fromCodePoint(code);
			const apart = character.normalize("NFKD");
			const more = bytesOf(apart) - bytesOf(character);
			if (more > 15 * (bytesOf(character) - character.length)) throw new Error(`U+${code.toString(16)} adds ${more}`);
			// A composed character is at most as long as its parts, so NFKC is never longer than NFKD.
			const marks = [...character.normalize("NFD")];
			const last = marks.pop() as string;
			const rest = marks.join("").normalize("NFC");
			if (marks.length > 0 && (rest + last).normalize("NFC") === character && [...rest].length === 1)
				if (bytesOf(character) > bytesOf(rest) + bytesOf(last)) throw new Error(`U+${code.toString(16)} is longer`);
		}
		const normalized = spyOn(String.prototype, "normalize");
		try {
			const prose = `${"a".repeat(999)}\u{FDFA}`.repeat(10);
			expect(measureChat([{ content: prose }], [], model).addedBytes).toBe(10 * (33 - 3));
			expect(normalized).not.toHaveBeenCalled();
		} finally {
			normalized.mockRestore();
		}
	});

	test("counts only the prompt's bytes if the tokenizer does not normalize", () => {
		const plain = modelOver([], { contextLength: 100_000_000, templateOverheadTokens: 64, textNormalization: "none" });
		expect(bound("\u{FDFA}".repeat(100), plain)).toBeLessThan(400);
	});

	test("does not read a text that is longer than the model's context length", () => {
		const small = modelOver([], { contextLength: 4_000 });
		const normalized = spyOn(String.prototype, "normalize");
		try {
			const startedMs = cpuMs();
			expect(bound("\u{FDFA}".repeat(5_000_000), small)).toBe(4_000);
			expect(cpuMs() - startedMs).toBeLessThan(1_000);
			expect(normalized).not.toHaveBeenCalled();
		} finally {
			normalized.mockRestore();
		}
	});

	test("leaves the estimate of the prompt's tokens unchanged", () => {
		const measure = measureChat([{ role: "user", content: "\u{FDFA}".repeat(100) }], [], model);
		expect(promptTokensEstimate(measure, model)).toBeLessThan(100);
	});
});

describe("the upper bound of a prompt's tokens", () => {
	test("covers every token of a byte-level vocabulary", () => {
		fc.assert(
			fc.property(fc.array(message, { minLength: 1, maxLength: 6 }), tools, (messages, offered) => {
				const rendered = offered.length > 0 ? [offered] : [];
				const measure = measureChat(messages, rendered, model);
				expect(promptTokensMax(measure, model)).toBeGreaterThanOrEqual(byteTokens(messages, rendered));
			}),
			RUNS,
		);
	});

	test("covers the chat template's marks around many short messages", () => {
		const messages = Array.from({ length: 200 }, () => ({ role: "user", content: "a" }));
		expect(promptTokensMax(measureChat(messages, [], model), model)).toBeGreaterThanOrEqual(byteTokens(messages, []));
	});

	test("ignores fields whose value is null", () => {
		const measure = (more: object) => measureChat([{ role: "user", content: "text", ...more }], [], model);
		expect(measure({ name: null, tool_calls: undefined })).toEqual(measure({}));
	});

	test("covers names, call ids and arguments of tool calls", () => {
		const calls = [{ id: "call_1", type: "function", function: { name: "f", arguments: "x".repeat(5_000) } }];
		const bound = promptTokensMax(
			measureChat([{ role: "assistant", content: null, tool_calls: calls }], [], model),
			model,
		);
		expect(bound).toBeGreaterThan(5_000);
		const named = promptTokensMax(
			measureChat([{ role: "tool", name: "n".repeat(900), tool_call_id: "c".repeat(900), content: "" }], [], model),
			model,
		);
		expect(named).toBeGreaterThan(1_800);
	});

	test("counts an image with the most tiles that an image can have, whatever its URL", () => {
		const image = (url: string) => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] });
		const short = promptTokensMax(measureChat([image("data:,")], [], model), model);
		const long = promptTokensMax(
			measureChat([image(`data:image/png;base64,${"A".repeat(1_000_000)}`)], [], model),
			model,
		);
		expect(long).toBe(short);
		expect(short).toBeGreaterThanOrEqual(16_384);
	});

	test("is at most the model's context length", () => {
		const small = modelOver([], { contextLength: 100 });
		expect(promptTokensMax(measureChat([{ role: "user", content: "x".repeat(10_000) }], [], model), small)).toBe(100);
	});
});

describe("the estimate of a request's tokens", () => {
	test("never exceeds the prompt's upper bound", () => {
		fc.assert(
			fc.property(
				fc.array(message, { minLength: 1, maxLength: 6 }),
				fc.integer({ min: 1, max: 100_000 }),
				(messages, contextLength) => {
					const measure = measureChat(messages, [], model);
					const narrow = modelOver([], { contextLength });
					expect(promptTokensEstimate(measure, narrow)).toBeLessThanOrEqual(promptTokensMax(measure, narrow));
				},
			),
			RUNS,
		);
	});

	test("is at least one output token if any byte was delivered", () => {
		expect(completionTokensEstimate(0)).toBe(0);
		expect(completionTokensEstimate(1)).toBe(1);
		expect(completionTokensEstimate(400)).toBe(100);
		expect(completionTokensEstimate(12, 12)).toBe(12);
		expect(completionTokensEstimate(400, 12)).toBe(100);
	});
});
