import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { checkJsonStructure, type JsonStructure } from "../../src/base/json-structure.ts";

/** Generates JSON values with names and strings that could mislead a scanner. */
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

const namesIn = (json: unknown): number => {
	if (typeof json !== "object" || json === null) return 0;
	const inner = Object.values(json).reduce((sum: number, one) => sum + namesIn(one), 0);
	return inner + (Array.isArray(json) ? 0 : Object.keys(json).length);
};

const fieldOf = (text: string, field: string) => (checkJsonStructure(text, field) as JsonStructure).field();

test("the JSON structure check finds the field that JSON.parse reads, and counts names", () => {
	fc.assert(
		fc.property(
			fc.dictionary(fc.oneof(awkward, fc.constant("messages")), value),
			fc.constantFrom(undefined, 1, "\t", "\r\n "),
			(object, space) => {
				const text = JSON.stringify(object, null, space as string);
				const parsed = JSON.parse(text) as Record<string, unknown>;
				const isUnsure = Object.keys(parsed).some((name) => JSON.stringify(name).includes("\\"));
				for (const name of ["messages", ...Object.keys(parsed)]) {
					const raw = fieldOf(text, name);
					const isRaw = Object.hasOwn(parsed, name) && typeof parsed[name] === "object" && parsed[name] !== null;
					if (!isRaw) expect(raw).toBeUndefined();
					else if (raw === undefined) expect([name, isUnsure]).toEqual([name, true]);
					else {
						expect(JSON.stringify(JSON.parse(raw.text))).toBe(JSON.stringify(parsed[name]));
						expect(raw.names).toBe(namesIn(parsed[name]));
					}
				}
			},
		),
		{ numRuns: 2_000, seed: 7 },
	);
});

test("the JSON structure check finds the last of several fields with the same name", () => {
	expect(fieldOf('{"a":[1],"b":{"a":5},"a" : [2] }', "a")?.text).toBe("[2]");
	expect(fieldOf('{"a":[1],"\\u0061":[2]}', "a")).toBeUndefined();
	expect(fieldOf('{"\\u0061":[2],"a":[-1.5e3]}', "a")).toBeUndefined();
	expect(fieldOf('\n{ "a" : {"x": "\\\\" }  , "b":"\\"a\\":1" }', "a")?.text).toBe('{"x": "\\\\" }');
	expect(fieldOf('{"b":[{"a":[1]}],"c":"a"}', "a")).toBeUndefined();
	expect(fieldOf("{}", "a")).toBeUndefined();
});

test("the JSON structure check counts a repeated field name twice", () => {
	expect(fieldOf('{"m":[{"content":[{"x":1}],"content":"hi"}]}', "m")?.names).toBe(3);
	expect(fieldOf('{"m":[{"content":"a:b{\\"c\\":"}]}', "m")?.names).toBe(1);
});

test("the JSON structure check gives the same result in several steps and in one step", async () => {
	const before = `{"n":[${"1,".repeat(300_000)}1],"m":[{"x":"`;
	const [most, tooMany] = [1_000_000, 1_000_001].map((count) => `${before}${"\\n".repeat(count)}"}]}`);
	expect((await checkJsonStructure(most as string, "m")).field()?.names).toBe(1);
	expect(JSON.parse((await checkJsonStructure(most as string, "m")).field()?.text as string)[0].x).toHaveLength(
		1_000_000,
	);
	await expect(Promise.resolve(checkJsonStructure(tooMany as string, "m"))).rejects.toThrow("escapes");
});

const parsedBytesOf = async (text: string) => (await checkJsonStructure(text)).parsedBytes;

/** Bytes of heap that the parsed text takes. */
function grownBy(text: string): number {
	Bun.gc(true);
	const before = heapStats();
	const parsed = JSON.parse(text);
	Bun.gc(true);
	const { heapSize, extraMemorySize } = heapStats();
	expect(parsed).toHaveProperty("x");
	return heapSize + extraMemorySize - before.heapSize - before.extraMemorySize;
}

test.each([
	["arrays", "[]"],
	["objects", '{"a":1}'],
	["nested arrays", "[[[[]]]]"],
	["numbers", "1"],
])("the JSON structure check counts the memory of many %s", async (_, one) => {
	const text = `{"x":[${Array(49_000).fill(one).join()}]}`;
	expect(grownBy(text)).toBeLessThan((await parsedBytesOf(text)) + 512 * 1024);
});

test("the JSON structure check counts no memory of a chat with 50 messages", async () => {
	const messages = Array.from({ length: 50 }, (_, nth) => ({ role: "user", content: `${nth}` }));
	expect(await parsedBytesOf(JSON.stringify({ model: "m", messages }))).toBe(0);
});

test.each(["0", "99", "999", "1000", "99999", "4294967294", "\\u0039\\u00399"])(
	"the JSON structure check counts the memory of objects with the name %s",
	async (name) => {
		const body = (count: number) => `{"x":[${Array.from({ length: count }, () => `{"${name}":1}`).join()}]}`;
		expect(grownBy(body(2_048))).toBeLessThan((await parsedBytesOf(body(2_048))) + 2 * 1024 * 1024);
		expect(() => checkJsonStructure(body(2_049))).toThrow(
			expect.objectContaining({ code: "invalid_request", param: "x" }),
		);
	},
);

test("the JSON structure check counts the memory of each object with indexes once", async () => {
	const bytesOf = async (text: string) => Math.floor((await parsedBytesOf(text)) / 8192);
	const bias = Array.from({ length: 300 }, (_, at) => `"${at}":1`).join();
	expect(await bytesOf(`{"logit_bias":{${bias}}}`)).toBe(1);
	expect(await bytesOf('{"x":{"a":{"a":{"3":1},"2":1},"1":1}}')).toBe(3);
	expect(await bytesOf('{"x":{"n1":1,"1.5":3,"-1":4,"12345678901":5,"y":"7"}}')).toBe(0);
});
