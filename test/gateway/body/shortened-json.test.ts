import { expect, test } from "bun:test";
import fc from "fast-check";
import { checkStructure, LONG_STRING_CHARS, type RawValue } from "../../../src/base/json-structure.ts";
import { BEGINNING_CHARS, parseShortened } from "../../../src/gateway/body/shortened-json.ts";

const PROSE = "A line of prose, as people write it, of some length. ";
const proseOf = (chars: number) => PROSE.repeat(Math.ceil(chars / PROSE.length)).slice(0, chars);

/** What stands between two quotes of a text: much that is plain, and what could mislead whoever leaps over it. */
const awkward = fc.oneof(
	{
		weight: 30,
		arbitrary: fc.constantFrom("\\n", '\\"', "\\\\", "\\\\\\\\", "\\/", "\\u00e9", "\\ud800", "é", "\u007f", "\u2028"),
	},
	// None of these may stand there.
	{ weight: 1, arbitrary: fc.constantFrom("\\x", "\\u12", "\\", "\n", "\u0000", "\u001f", '"') },
);
const written = fc
	.tuple(
		fc.integer({ min: 0, max: LONG_STRING_CHARS + 3_000 }),
		fc.array(fc.tuple(awkward, fc.integer({ min: 0, max: 3_000 })), { maxLength: 3 }),
	)
	.map(([chars, more]) => proseOf(chars) + more.map(([sign, behind]) => sign + proseOf(behind)).join(""));
const space = fc.constantFrom("", "", "", " ", "\n\t");
const member = fc
	.tuple(fc.constantFrom("role", "content", "content", "name", "\\u0063ontent"), space, space, written)
	.map(([name, before, behind, text]) => `"${name}"${before}:${behind}"${text}"`);
const nested = fc.constantFrom('"tool_calls":[]', '"tool_calls":[{}]', '"content":null', '"content":[{"type":"text"}]');
const message = fc
	.array(fc.oneof({ weight: 9, arbitrary: member }, { weight: 1, arbitrary: nested }), { maxLength: 3 })
	.map((members) => `{${members.join(",")}}`);
const longName = written.map((text) => `{"${text}" :1}`);
const list = fc
	.array(fc.oneof({ weight: 9, arbitrary: message }, { weight: 1, arbitrary: longName }), { maxLength: 4 })
	.map((items) => `[${items.join(", ")}]`);
const body = fc
	.tuple(list, list, fc.constantFrom("", '"messages":', '"other":', '"m\\u0065ssages":', "]"), written)
	.map(([some, others, before, text]) =>
		before === "" ? `{"messages":${some},"user":"${text}"}` : `{${before}${others},"messages":${some}}`,
	);
/** One sign of it is another one, or missing. */
const broken = fc
	.tuple(body, fc.nat(), fc.constantFrom("", '"', "\\", ",", "{", ":", "\u0001", "x"))
	.map(([text, at, sign]) => {
		const place = at % text.length;
		return text.slice(0, place) + sign + text.slice(place + 1);
	});

const shortened = (text: string) => parseShortened(text, checkStructure(text, "messages") as RawValue | undefined);

function parsedOr<T>(parse: () => T): T | "no JSON" {
	try {
		return parse();
	} catch (error) {
		expect(error).toBeInstanceOf(SyntaxError);
		return "no JSON";
	}
}

/** The bytes that strings of `whole` have more than those of `short`, which begin like them; all else is the same. */
function missingBytes(whole: unknown, short: unknown): number {
	if (typeof whole === "string") {
		expect(typeof short === "string" && whole.startsWith(short)).toBe(true);
		return Buffer.byteLength(whole) - Buffer.byteLength(short as string);
	}
	if (typeof whole !== "object" || whole === null) {
		expect(short).toBe(whole);
		return 0;
	}
	expect(Object.keys(short as object)).toEqual(Object.keys(whole));
	return Object.entries(whole).reduce(
		(sum, [name, value]) => sum + missingBytes(value, (short as Record<string, unknown>)[name]),
		0,
	);
}

function namesIn(value: unknown): number {
	if (typeof value !== "object" || value === null) return 0;
	const own = Array.isArray(value) ? 0 : Object.keys(value).length;
	return Object.values(value).reduce<number>((sum, one) => sum + namesIn(one), own);
}

test("what is left out of a parsed text is the end of strings in its member, counted to the byte; what is no JSON is none", () => {
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
			const missing = missingBytes(some, messages);
			// Of what has a name twice nothing goes on as it came.
			if (namesIn(some) < ((checkStructure(text, "messages") as RawValue | undefined)?.names ?? 0))
				expect(missing).toBeLessThanOrEqual(short.leftOutBytes);
			else expect(missing).toBe(short.leftOutBytes);
			parsed += 1;
			if (short.leftOutBytes > 0) leftOut += 1;
		}),
		{ numRuns: 2_000 },
	);
	expect(parsed).toBeGreaterThan(500);
	expect(leftOut).toBeGreaterThan(100);
});

test("of long messages the first two keep what conversations are told apart by, the others nothing", () => {
	const content = `${proseOf(500)}\\n`.repeat(20);
	const messages = Array.from({ length: 100 }, () => `{"role":"user","content":"${content}"}`);
	const { value, leftOutBytes } = shortened(`{"messages":[${messages.join(",")}]}`);
	const said = (value as { messages: { content: string }[] }).messages.map((one) => one.content.length);
	for (const length of said.slice(0, 2)) expect(length).toBeWithin(BEGINNING_CHARS, 2 * BEGINNING_CHARS + 1);
	expect(said.slice(2)).toEqual(Array(98).fill(0));
	expect(leftOutBytes).toBe(100 * 20 * 501 - said.reduce((sum, length) => sum + length));
});

test("no escape is cut where a string ends early", () => {
	for (const escapes of ["\\n", "\\\\", '\\\\\\"'])
		for (let before = 0; before <= 2 * escapes.length; before += 1) {
			const content = `${proseOf(2 * BEGINNING_CHARS - before)}${escapes}${proseOf(LONG_STRING_CHARS)}`;
			const text = `{"messages":[{"content":"${content}"}]}`;
			const { value, leftOutBytes } = shortened(text);
			expect(missingBytes(JSON.parse(text), value)).toBe(leftOutBytes);
			expect(leftOutBytes).toBeGreaterThan(0);
		}
});

test("nothing is left out of what holds more than messages of text, nor of text with escapes everywhere, nor beyond ASCII", () => {
	const long = proseOf(10_000);
	for (const messages of [
		`[{"role":"user","content":[{"type":"text","text":"${long}"}]}]`,
		`[{"role":"user","content":"${long}"},{"role":"assistant","tool_calls":[]}]`,
		`[{"role":"user","content":"${"a line\\n".repeat(2_000)}"}]`,
		`[{"role":"user","content":"${long}é"}]`,
		`[{"role":"user","content":"${long}\\u0041"}]`,
		`[{"${long}":"x"}]`,
	])
		expect(shortened(`{"messages":${messages}}`)).toEqual({
			value: { messages: JSON.parse(messages) },
			leftOutBytes: 0,
		});
});
