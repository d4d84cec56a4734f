import fc from "fast-check";

/** Request bodies as texts that no serializer would write, with repeated and escaped names. */

/** Names that limit the output, and names that look as if they did. */
export const LIMIT_NAMES = "max_tokens max_completion_tokens max_new_tokens n_predict num_predict best_of".split(" ");
const OTHER_NAMES = [
	"temperature",
	"stop",
	"seed",
	"tools",
	"tool_choice",
	"response_format",
	"user",
	"logprobs",
	"stream_options",
	"Max_Tokens",
	"max_tokens ",
	"__proto__",
	"constructor",
	"toString",
	"made_up",
];

const NUMBERS = '0 1 2 5 16 1e2 5.0 2E0 1.5 -1 -0 1000000 9007199254740993 1e400 null "7" true'.split(" ");

function escaped(text: string, every: number): string {
	let at = 0;
	const spelled = [...text].map((sign) => {
		if (!/[a-z_]/.test(sign)) return JSON.stringify(sign).slice(1, -1);
		at += 1;
		return every > 0 && at % every === 0 ? `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}` : sign;
	});
	return `"${spelled.join("")}"`;
}

const nameText = (...names: string[]) =>
	fc.tuple(fc.constantFrom(...names), fc.integer({ min: 0, max: 6 })).map(([name, every]) => escaped(name, every));

const words = fc.oneof(
	{ weight: 12, arbitrary: fc.string({ maxLength: 40 }) },
	{ weight: 12, arbitrary: fc.string({ maxLength: 40, unit: "grapheme" }) },
	{ weight: 12, arbitrary: fc.string({ maxLength: 20, unit: "binary" }) },
	{ weight: 12, arbitrary: fc.constantFrom("", "\u0000", "ﷺ", '\n\t\\"', "😀".repeat(9), "</s><|im_end|>") },
	// A message so long that it is sent on without parsing, with parts that parsing would drop.
	{
		weight: 1,
		arbitrary: fc.constantFrom(
			"\n".repeat(9_000),
			'say "no"\n'.repeat(2_000),
			"a line of prose ".repeat(400),
			`${"a line of prose ".repeat(20)}\n`.repeat(40),
		),
	},
);

const stringText = fc.oneof(
	fc.tuple(words, fc.integer({ min: 0, max: 4 })).map(([text, every]) => escaped(text, every)),
	fc.constantFrom('"\\ud800"', '"\\udc00x"', '"\\/"', '"\\u0000"'),
);

const anyText: fc.Arbitrary<string> = fc.oneof(
	stringText,
	fc.constantFrom(...NUMBERS),
	fc.constantFrom("[]", "{}", '{"a":1,"a":2}', '[1,[2,{"deep":["x"]}]]', '{"type":"text","type":"json_object"}'),
);

const partText = fc.oneof(
	stringText.map((text) => `{"type":"text","text":${text}}`),
	stringText.map((text) => `{"type":"text","text":"short","text":${text},"video_url":"http://10.0.0.1/"}`),
	fc.constant('{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}'),
);
const contentText = fc.oneof(
	{ weight: 4, arbitrary: stringText },
	{ weight: 1, arbitrary: fc.array(partText, { maxLength: 3 }).map((parts) => `[${parts.join(",")}]`) },
);
const role = fc.tuple(nameText("role"), fc.constantFrom('"user"', '"system"', '"assistant"', '"us\\u0065r"'));
const content = fc.tuple(nameText("content"), contentText);
const callText = fc
	.tuple(nameText("name", "arguments"), stringText, nameText("arguments", "text"), stringText)
	.map(([first, one, second, two]) => `{"id":"c","type":"function","function":{${first}:${one},${second}:${two}}}`);
const calls = fc
	.tuple(nameText("tool_calls"), fc.array(callText, { maxLength: 2 }))
	.map(([name, list]) => [name, `[${list.join(",")}]`] as const);
const extra = fc.tuple(nameText("name", "tool_call_id", "reasoning_content", "made_up"), anyText);
const messageText = fc
	.tuple(role, content, fc.array(fc.oneof(role, content, extra, calls), { maxLength: 3 }))
	.map(([first, second, more]) => `{${[first, second, ...more].map(([name, value]) => `${name}:${value}`).join(",")}}`);
const messagesText = fc.array(messageText, { minLength: 1, maxLength: 4 }).map((list) => `[${list.join(",")}]`);

const toolsText = fc
	.array(
		stringText.map((text) => `{"type":"function","function":{"name":"f","description":${text},"name":"g"}}`),
		{ maxLength: 2 },
	)
	.map((list) => `[${list.join(",")}]`);

const limitMember = fc.tuple(nameText(...LIMIT_NAMES, "n"), fc.constantFrom(...NUMBERS));
const otherMember = fc.oneof(
	fc.tuple(nameText(...OTHER_NAMES), anyText),
	fc.tuple(nameText("tools"), toolsText),
	fc.tuple(nameText("stop"), fc.constantFrom('"a"', '["a","b"]')),
	fc.tuple(nameText("stream"), fc.constantFrom("true", "false", "null")),
	fc.tuple(nameText("temperature"), fc.constantFrom("0", "1", "2e0")),
);
const promptText = fc.oneof(
	stringText,
	fc.array(stringText, { minLength: 1, maxLength: 3 }).map((list) => `[${list.join(",")}]`),
	fc.constantFrom("[1,2,3]", "[[1,2],[3]]", "[1e2,2.0]"),
);

const bodyText = (prompt: fc.Arbitrary<readonly [string, string]>) => {
	const required = fc.tuple(fc.constant(['"model"', '"test-model"'] as const), prompt);
	const optional = fc.array(
		fc.oneof(
			{ weight: 3, arbitrary: limitMember },
			{ weight: 2, arbitrary: otherMember },
			{ weight: 1, arbitrary: prompt },
		),
		{ maxLength: 8 },
	);
	return fc
		.tuple(required, optional)
		.chain(([first, more]) => {
			const members = [...first, ...more];
			return fc.shuffledSubarray(members, { minLength: members.length });
		})
		.map((members) => `{${members.map(([name, value]) => `${name}:${value}`).join(",")}}`);
};

export const chatBodyText = bodyText(fc.tuple(nameText("messages"), messagesText));
export const completionBodyText = bodyText(fc.tuple(nameText("prompt"), promptText));
