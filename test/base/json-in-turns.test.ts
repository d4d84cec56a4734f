import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chunkedJsonBody } from "../../src/base/chunked-json-body.ts";
import { parseJsonInTurns } from "../../src/base/json-in-turns.ts";
import { LONG } from "../support/long-form.ts";

const MB = 1024 * 1024;
const SHARE = LONG ? 1 : 0.1;
const bytesOf = (text: string) => new TextEncoder().encode(text);

function plainly(bytes: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder().decode(bytes)) ?? undefined;
	} catch {
		return undefined;
	}
}

/** Generates texts that are easily cut at a wrong place, nested values, and names with a meaning in JavaScript. */
const texts = fc
	.array(fc.constantFrom("a", '"', "\\", "\\\\", "\n", "中", "😀", "\ud83d", "\u0001", "é", "xyz".repeat(9)), {
		maxLength: 40,
	})
	.map((parts) => parts.join(""));
/** Only short names, because the parser refuses a name that is longer than a piece. */
const names = fc.constantFrom("__proto__", "constructor", "", "a", "0", "é", '"', "\\", "b");
const values = fc.letrec((tie) => ({
	value: fc.oneof(
		{ maxDepth: 6 },
		fc.oneof(texts, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
		fc.array(tie("value"), { maxLength: 12 }),
		fc
			.array(fc.tuple(names, tie("value")), { maxLength: 8 })
			.map((entries) => JSON.parse(membersOf(entries)) as object),
	),
})).value;
const membersOf = (entries: [string, unknown][]) =>
	`{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`;

describe("the JSON parser that works in steps", () => {
	test("gives the same value as JSON.parse, wherever the text is cut", async () => {
		await fc.assert(
			fc.asyncProperty(values, fc.integer({ min: 48, max: 128 }), fc.boolean(), async (value, pieceBytes, isPretty) => {
				const bytes = bytesOf(JSON.stringify(value, null, isPretty ? 1 : 0));
				expect(await parseJsonInTurns(bytes, pieceBytes)).toEqual(plainly(bytes));
			}),
			{ numRuns: 2_000 * SHARE, seed: 7 },
		);
	});

	test("refuses invalid JSON at whichever byte the mistake is", async () => {
		const signs = [...'{}[],:"\\0a \n'].map((sign) => sign.charCodeAt(0));
		let refused = 0;
		await fc.assert(
			fc.asyncProperty(
				values,
				fc.nat(),
				fc.constantFrom(...signs),
				fc.constantFrom(0, 1),
				fc.integer({ min: 48, max: 64 }),
				async (value, place, sign, kept, pieceBytes) => {
					const text = [...bytesOf(JSON.stringify(value))];
					text.splice(place % text.length, kept, sign);
					const bytes = new Uint8Array(text);
					const plain = plainly(bytes);
					if (plain === undefined) refused += 1;
					expect(await parseJsonInTurns(bytes, pieceBytes)).toEqual(plain);
				},
			),
			{ numRuns: 4_000 * SHARE, seed: 8 },
		);
		expect(refused).toBeGreaterThan(1_000 * SHARE);
	});

	const NO_ANSWERS: Readonly<Record<string, () => string>> = {
		"more levels than permitted": () => `${"[".repeat(200_000)}${"]".repeat(200_000)}`,
		"a million objects": () => `[${"[{},{}],".repeat(500_000)}1]`,
		"more values than a list may have": () => `[${"1,".repeat(1_000_001)}1]`,
		"more texts than permitted": () => `[${'"ab",'.repeat(500_001)}1]`,
		"more members than permitted": () => `{${Array.from({ length: 100_002 }, (_, at) => `"n${at}":1`).join(",")}}`,
		"blanks without end": () => `{"a":${" ".repeat(MB)}1}`,
		"digits without end": () => "1".repeat(MB),
		"backslashes without end": () => `"${"\\\\".repeat(MB)}"`,
		"a text of more than 48 MB": () => `"${"x".repeat(49 * MB)}"`,
		"two values": () => `["${"x".repeat(MB)}"] []`,
	};
	for (const [name, make] of Object.entries(NO_ANSWERS))
		test(`refuses ${name}`, async () => {
			expect(await parseJsonInTurns(bytesOf(make()))).toBeUndefined();
		});
});

describe("the JSON serializer that works in pieces", () => {
	test("gives the same text as JSON.stringify, in pieces if the text is long", async () => {
		let pieces = 0;
		await fc.assert(
			fc.asyncProperty(values, fc.constantFrom(1_000, 300_000), async (value, chars) => {
				const times = Math.ceil(chars / (JSON.stringify(value).length + 20));
				const all = { value, again: Array.from({ length: times }, () => value), none: undefined };
				const body = chunkedJsonBody(all);
				if (typeof body !== "string") pieces += 1;
				expect((await new Response(body).text()) === JSON.stringify(all)).toBeTrue();
			}),
			{ numRuns: 60 * SHARE, seed: 9 },
		);
		expect(pieces).toBeGreaterThan(10 * SHARE);
	});

	test("returns a long string unchanged, and splits no character", async () => {
		for (const text of ["😀".repeat(MB), `a${"😀".repeat(MB)}`, `"\\\n${"é".repeat(MB)}`]) {
			expect((await new Response(chunkedJsonBody({ text })).text()) === JSON.stringify({ text })).toBeTrue();
			expect((await new Response(chunkedJsonBody(text)).text()) === text).toBeTrue();
		}
	});
});
