import { describe, expect, test } from "bun:test";
import { Prompt } from "../../src/upstream/prompt.ts";

const LONG = `line "one"\\n\n\tzwei – 三 😀 \u0001\u2028 {"messages":[]} `.repeat(2_000);
const long = [{ role: "user", content: LONG }];
const raw = ` [\r\n{"role":"user",\n\r"content":${JSON.stringify(LONG).replaceAll("z", "\\u007a")} } ]`;

const PROMPTS = [
	["short", [{ role: "user", content: "x" }], undefined],
	["short, in the client's spelling", "x", '"\\u0078"'],
	["long", long, undefined],
	["long, in the client's spelling", long, raw],
	["long, of lone surrogates", [{ role: "user", content: "\ud800".repeat(20_000) }], undefined],
] as const;

describe("a prompt to be sent", () => {
	test.each(PROMPTS)("that is %s is serialized again for each replica", (_, value, text) => {
		const prompt = new Prompt(value, text);
		for (const members of [{ model: "a" }, { model: "bbb", stop: ['"messages":['], stream: true }, { model: "c" }]) {
			const written = prompt.writtenInto({ ...members }, "messages");
			expect(JSON.parse(written)).toEqual({ ...members, messages: value });
			if (text !== undefined) expect(written).toEndWith(`,"messages":${text}}`);
		}
	});

	test("that was freed is not serialized again", () => {
		for (const [, value, text] of PROMPTS) {
			const prompt = new Prompt(value, text);
			prompt.writtenInto({ model: "a" }, "messages");
			prompt.letGo();
			expect(() => prompt.writtenInto({ model: "a" }, "messages")).toThrow();
		}
	});
});
