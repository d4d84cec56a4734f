import { expect, test } from "bun:test";
import fc from "fast-check";
import { rawMemberOf } from "../../../src/gateway/chat/raw-member.ts";

/** Any JSON value, with keys and strings full of what could mislead a scanner. */
const awkward = fc.oneof(
	fc.string(),
	fc.constantFrom(
		'"',
		"\\",
		'\\"',
		'{"',
		'":',
		"[[",
		"}",
		"]",
		",",
		"messages",
		'"messages":[1]',
		"\u2028",
		"\ud800",
		"ü",
	),
);
const value = fc.letrec((tie) => ({
	any: fc.oneof({ maxDepth: 4 }, awkward, fc.double(), fc.boolean(), fc.constant(null), tie("list"), tie("map")),
	list: fc.array(tie("any"), { maxLength: 4 }),
	map: fc.dictionary(awkward, tie("any"), { maxKeys: 4 }),
})).any;

/** Names on all levels of a parsed value. */
const namesIn = (json: unknown): number => {
	if (typeof json !== "object" || json === null) return 0;
	const inner = Object.values(json).reduce((sum: number, one) => sum + namesIn(one), 0);
	return inner + (Array.isArray(json) ? 0 : Object.keys(json).length);
};

test("what it finds reads as what JSON.parse found, with its names counted, however the text is laid out", () => {
	fc.assert(
		fc.property(
			fc.dictionary(fc.oneof(awkward, fc.constant("messages")), value),
			fc.constantFrom(undefined, 1, "\t", "\r\n "),
			(object, space) => {
				const text = JSON.stringify(object, null, space as string);
				const parsed = JSON.parse(text) as Record<string, unknown>;
				for (const name of ["messages", ...Object.keys(parsed)]) {
					const raw = rawMemberOf(text, name);
					if (!Object.hasOwn(parsed, name)) expect(raw).toBeUndefined();
					else {
						expect(JSON.stringify(JSON.parse(raw?.text as string))).toBe(JSON.stringify(parsed[name]));
						expect(raw?.names).toBe(namesIn(parsed[name]));
					}
				}
			},
		),
		{ numRuns: 2_000, seed: 7 },
	);
});

test("of members with one name the last counts, however its name is written", () => {
	expect(rawMemberOf('{"a":[1],"b":{"a":5},"a" : [2] }', "a")?.text).toBe("[2]");
	expect(rawMemberOf('{"a":1,"\\u0061":2}', "a")?.text).toBe("2");
	expect(rawMemberOf('{"\\u0061":2,"a":-1.5e3}', "a")?.text).toBe("-1.5e3");
	expect(rawMemberOf('\n{ "a" : "x\\\\" , "b":"\\"a\\":1" }', "a")?.text).toBe('"x\\\\"');
	expect(rawMemberOf("{}", "a")).toBeUndefined();
});

test("a name that stands twice is counted twice, so that it can be told from the parsed value", () => {
	expect(rawMemberOf('{"m":[{"content":[{"x":1}],"content":"hi"}]}', "m")?.names).toBe(3);
	expect(rawMemberOf('{"m":[{"content":"a:b{\\"c\\":"}]}', "m")?.names).toBe(1);
});
