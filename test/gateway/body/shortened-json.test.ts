import { expect, test } from "bun:test";
import fc from "fast-check";
import type { AsciiLength } from "../../../src/admission/prompt-bound.ts";
import { checkJsonStructure, type JsonStructure, LONG_STRING_CHARS } from "../../../src/base/json-structure.ts";
import { shortenTexts } from "../../../src/gateway/body/shortened-json.ts";

const PROSE = "A line of prose, as people write it, of some length. ";
const proseOf = (chars: number) => PROSE.repeat(Math.ceil(chars / PROSE.length)).slice(0, chars);

/** Contents of JSON strings: plain text, and sequences that could mislead a scanner (escapes, brackets, quotes). */
const awkward = fc.oneof(
	{
		weight: 30,
		arbitrary: fc.constantFrom(
			"\\n",
			'\\"',
			"\\\\",
			"\\\\\\\\",
			"\\/",
			"\\u00e9",
			"\\ud800",
			"é",
			"😀",
			"😀",
			"\u007f",
			"\u2028",
		),
	},
	// Bytes that JSON strings must not contain.
	{ weight: 1, arbitrary: fc.constantFrom("\\x", "\\u12", "\\", "\n", "\u0000", "\u001f", '"') },
);
const written = fc
	.tuple(
		fc.oneof(
			{ weight: 1, arbitrary: fc.integer({ min: 0, max: LONG_STRING_CHARS + 3_000 }) },
			{ weight: 2, arbitrary: fc.constant(2 * LONG_STRING_CHARS) },
		),
		fc.oneof(
			{ weight: 1, arbitrary: fc.array(fc.tuple(awkward, fc.integer({ min: 0, max: 3_000 })), { maxLength: 3 }) },
			{ weight: 2, arbitrary: fc.constant([]) },
		),
	)
	.map(([chars, more]) => proseOf(chars) + more.map(([sign, behind]) => sign + proseOf(behind)).join(""));
const space = fc.constantFrom("", "", "", " ", "\n\t");
const memberOf = (...names: string[]) =>
	fc
		.tuple(fc.constantFrom(...names), space, space, written)
		.map(([name, before, behind, text]) => `"${name}"${before}:${behind}"${text}"`);
const objectOf = (member: fc.Arbitrary<string>) =>
	fc.array(member, { maxLength: 3 }).map((members) => `{${members.join(",")}}`);
const listOf = (item: fc.Arbitrary<string>) =>
	fc.array(item, { minLength: 1, maxLength: 2 }).map((items) => `[${items.join(" , ")}]`);
const part = objectOf(memberOf("type", "text", "text", "url", 'a\\"text'));
const call = objectOf(memberOf("id", "arguments", "text")).map((inner) => `{"function":${inner}}`);
const member = fc.oneof(
	{ weight: 12, arbitrary: memberOf("role", "content", "content", "content", "name", "\\u0063ontent") },
	{ weight: 2, arbitrary: listOf(part).map((parts) => `"content":${parts}`) },
	{ weight: 1, arbitrary: listOf(call).map((calls) => `"tool_calls":${calls}`) },
	{ weight: 1, arbitrary: fc.constantFrom('"content":null', '"content":[[[[[{}]]]]]', '"n":1e400') },
);
const message = objectOf(member);
const longName = written.map((text) => `{"${text}" :1}`);
const list = fc
	.array(fc.oneof({ weight: 12, arbitrary: message }, { weight: 1, arbitrary: longName }), { maxLength: 4 })
	.map((items) => `[${items.join(", ")}]`);
const body = fc
	.tuple(list, list, fc.constantFrom("", '"messages":', '"other":', '"m\\u0065ssages":', "]"), written)
	.map(([some, others, before, text]) =>
		before === "" ? `{"messages":${some},"user":"${text}"}` : `{${before}${others},"messages":${some}}`,
	);
/** JSON texts with one character changed or removed. */
const broken = fc
	.tuple(body, fc.nat(), fc.constantFrom("", '"', "\\", ",", "{", ":", "\u0001", "x"))
	.map(([text, at, sign]) => {
		const place = at % text.length;
		return text.slice(0, place) + sign + text.slice(place + 1);
	});

function shortened(text: string) {
	const short = shortenTexts(text, (checkJsonStructure(text, "messages") as JsonStructure).field());
	return { value: JSON.parse(short.text) as unknown, leftOut: short.leftOut };
}

function parsedOr<T>(parse: () => T): T | "no JSON" {
	try {
		return parse();
	} catch (error) {
		expect(error).toBeInstanceOf(SyntaxError);
		return "no JSON";
	}
}

const NOTHING: AsciiLength = { bytes: 0, chars: 0 };

/** Size of the text that is in `whole` but not in `short`. Asserts that everything else is equal. */
function missingIn(whole: unknown, short: unknown): AsciiLength {
	if (typeof whole === "string") {
		expect(typeof short === "string" && whole.startsWith(short)).toBe(true);
		const [all, some] = [whole, short as string];
		return { bytes: Buffer.byteLength(all) - Buffer.byteLength(some), chars: all.length - some.length };
	}
	if (typeof whole !== "object" || whole === null) {
		expect(short).toBe(whole);
		return NOTHING;
	}
	expect(Object.keys(short as object)).toEqual(Object.keys(whole));
	return Object.entries(whole).reduce<AsciiLength>((sum, [name, value]) => {
		const more = missingIn(value, (short as Record<string, unknown>)[name]);
		return { bytes: sum.bytes + more.bytes, chars: sum.chars + more.chars };
	}, NOTHING);
}

function namesIn(value: unknown): number {
	if (typeof value !== "object" || value === null) return 0;
	const own = Array.isArray(value) ? 0 : Object.keys(value).length;
	return Object.values(value).reduce<number>((sum, one) => sum + namesIn(one), own);
}

test("a shortened body lacks only ends of strings in `messages`, and each byte counts", () => {
	let parsed = 0;
	let leftOut = 0;
	fc.assert(
		fc.property(fc.oneof(body, broken), (text) => {
			const whole = parsedOr(() => JSON.parse(text) as Record<string, unknown>);
			const short = parsedOr(() => shortened(text));
			if (whole === "no JSON" || short === "no JSON") return expect(short).toBe(whole as never);
			const { messages: some, ...others } = whole;
			const { messages, ...rest } = short.value as Record<string, unknown>;
			expect(rest).toEqual(others);
			const missing = missingIn(some, messages);
			// If an object repeats a name, JSON.parse drops the earlier value, so fewer bytes are missing than were cut.
			if (namesIn(some) < ((checkJsonStructure(text, "messages") as JsonStructure).field()?.names ?? 0))
				expect(missing.bytes).toBeLessThanOrEqual(short.leftOut?.bytes ?? 0);
			else expect(missing).toEqual(short.leftOut ?? NOTHING);
			parsed += 1;
			if (short.leftOut !== undefined) leftOut += 1;
		}),
		{ numRuns: 2_000 },
	);
	expect(parsed).toBeGreaterThan(500);
	expect(leftOut).toBeGreaterThan(30);
});

test("a shortened body lacks long texts even between texts with many escapes", () => {
	const content = `${proseOf(500)}\\n`.repeat(20);
	const dense = "a line\\n".repeat(1_000);
	const messages = Array.from({ length: 100 }, (_, at) => {
		const text = at % 2 === 0 ? `"content":"${content}"` : `"content" : [{"type":"text","text":\n"${content}"}]`;
		return `{"role":"user",${text}},{"role":"tool","content":"${dense}"}`;
	});
	const { value, leftOut } = shortened(`{"messages":[${messages.join(",")}]}`);
	type Said = { role: string; content: string | { text: string }[] };
	const said = (value as { messages: Said[] }).messages
		.filter(({ role }) => role === "user")
		.map((one) => (typeof one.content === "string" ? one.content : one.content[0]?.text)?.length as number);
	expect(new Set(said)).toEqual(new Set([0]));
	expect(leftOut?.bytes).toBe(100 * 20 * 501);
});

test("a shortened body keeps URLs, arguments, names and texts with many escapes", () => {
	const long = proseOf(10_000);
	for (const messages of [
		`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"${long}"}}]}]`,
		`[{"role":"assistant","tool_calls":[{"function":{"arguments":"${long}"}}]}]`,
		`[{"role":"user","content":[[[[{"text":"${long}"}]]]]}]`,
		`[{"role":"user","name":"${long}"}]`,
		`[{"role":"user","content":"${"a line\\n".repeat(2_000)}"}]`,
		`[{"role":"user","content":"${`${proseOf(100)}é`.repeat(100)}"}]`,
		`[{"role":"user","content":"${long}\u0085"}]`,
		`[{"role":"user","content":"${long}\\u0041"}]`,
		`[{"${long}":"x"}]`,
		`["${long}"]`,
	])
		expect(shortened(`{"messages":${messages}}`)).toEqual({
			value: { messages: JSON.parse(messages) },
			leftOut: undefined,
		});
});

test("a body is not shortened if less than half of it can be cut", () => {
	const said = `{"role":"user","content":"${proseOf(20_000)}"}`;
	const called = (chars: number) =>
		`{"role":"assistant","tool_calls":[{"function":{"arguments":"${proseOf(chars)}"}}]}`;
	expect(shortened(`{"messages":[${said},${called(10_000)}]}`).leftOut?.bytes).toBeGreaterThan(15_000);
	expect(shortened(`{"messages":[${said},${called(20_000)}]}`).leftOut).toBeUndefined();
});
