import { describe, expect, test } from "bun:test";
import { ChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";

type Json = Record<string, unknown>;
/** A fragment as `index|id|name|arguments`; arguments in parentheses are sent as JSON instead of text. */
function fragment(text: string): Json {
	const [index = "", id = "", name, args] = text.split("|");
	const value = args?.startsWith("(") ? JSON.parse(args.slice(1, -1)) : args;
	return { ...(index === "" ? {} : { index: Number(index) }), id, function: { name, arguments: value } };
}

/** The calls that a client assembles by index, as `id name(arguments)`. `made`: an id that the gateway generated. */
function assembled(events: readonly (readonly string[])[], legacy = false): string[] {
	const reader = new ChatReader(DIALECTS.openai);
	const calls: { id: string; name: string; args: string }[] = [];
	const read = (delta: Json, finish: string | null) => {
		const chunk = reader.accept(JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] }));
		const said = chunk?.choices[0]?.delta ?? {};
		const pieces = ((legacy ? said.function_call && [{ function: said.function_call }] : said.tool_calls) ??
			[]) as Json[];
		expect(new Set(pieces.map(({ index }) => index)).size).toBe(pieces.length);
		for (const { index = 0, id, function: part } of pieces) {
			const { name = "", arguments: args } = part as { name?: string; arguments: string };
			// The first fragment of a call has the next free index.
			if (Number(index) >= calls.length) calls.push({ id: String(id), name, args });
			else {
				const call = calls[Number(index)] as (typeof calls)[number];
				expect(id).toBeUndefined();
				call.name += name;
				call.args += args;
			}
		}
	};
	for (const event of events)
		read(legacy ? { function_call: fragment(String(event[0])).function } : { tool_calls: event.map(fragment) }, null);
	read({}, "tool_calls");
	return calls.map(({ id, name, args }) => `${/^call_[0-9a-f]{32}$/.test(id) ? "made" : id} ${name}(${args})`);
}

describe("tool calls of a stream", () => {
	const both = ['a w({"c":1})', "b t({})"];
	const cases: [string, string, string[]][] = [
		["index 0 for each call, with ids", '0|a|w| 0||| 0|||{"c":1} 0|b|t|{}', both],
		["index 0 for each call, the first without arguments", "0|a|w 0|b|t|{}", ["a w({})", "b t({})"]],
		["index 0 for each call, with names only", '0||w|{"c": 0||w|"}"} 0||w|{}', ['made w({"c":"}"})', "made w({})"]],
		["index 0 for each call, with the id in later fragments", '0|a|w|{"c" 0|a||:1} 0|b|t|{ 0|b||}', both],
		["indexes from 1", '1|a|w|{"c":1} 2|b|t|{ 2|||}', both],
		["indexes with gaps", '0|a|w|{"c":1} 7|b|t|{}', both],
		["indexes beyond any limit", '5000|a|w|{"c":1} 9999|b|t|{}', both],
		["another index in later fragments", '0|a|w 1|||{"c":1} 2|b|t 3|||{}', both],
		["an interleaved order", '0|a|w|{"c" 1|b|t|{ 0|||:1} 1|||}', both],
		["an interleaved order without an index", '|a|w|{"c" |b|t|{ |a||:1} |||}', both],
		["id and name in each fragment", '0|a|w|{"c" 0|a|w|:1} 0|a|w| 1|b|t|{}', both],
		["another id in each fragment", '0|a|w|{"c" 0|x||:1} 0|y|| 1|b|t|{}', both],
		["one id for all calls", '0|a|w|{"c":1} 1|a|t|{}', ['a w({"c":1})', "made t({})"]],
		["a name in two fragments", '0|a|ab 0||cd|{"c":1}', ['a abcd({"c":1})']],
		["arguments as an object", '0|a|w|({"c":1}) 0|b|t|({})', both],
		["empty, null and missing arguments", "0|a|w| 1|b|t|(null) 2|c|u", ["a w({})", "b t({})", "c u({})"]],
		["braces and quotes in a text", '0||w|{"c":"}\\" 0|||{"} 0||t|{}', ['made w({"c":"}\\"{"})', "made t({})"]],
	];

	test.each(cases)("are assembled if the fragments have: %s", (_, text, calls) => {
		const fragments = text.split(" ");
		expect(assembled(fragments.map((one) => [one]))).toEqual(calls);
		expect(assembled([fragments])).toEqual(calls);
	});

	test("`function_call` gets arguments and one name", () => {
		expect(assembled([['||w|{"c"'], ["||w|:1}"]], true)).toEqual(['undefined w({"c":1})']);
		expect(assembled([["||w|(null)"]], true)).toEqual(["undefined w({})"]);
	});
});
