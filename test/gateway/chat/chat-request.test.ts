import { describe, expect, test } from "bun:test";
import { checkJsonStructure, type JsonStructure } from "../../../src/base/json-structure.ts";
import type { Model } from "../../../src/catalog/model.ts";
import { shortenTexts } from "../../../src/gateway/body/shortened-json.ts";
import { ChatRequestBody, readChatRequest } from "../../../src/gateway/chat/chat-request.ts";
import { modelOver } from "../../support/upstream-catalog.ts";

const HELLO = { role: "user", content: "hello" };
const model = modelOver([], { parameters: new Set(["temperature", "max_tokens", "n", "tools", "stop", "seed"]) });
const seeing = (imageUrls: Model["imageUrls"]) =>
	modelOver([], {
		imageUrls,
		reasoningHistory: "reasoning_content",
		inputModalities: new Set(["text", "image", "audio"]),
	});

const read = (body: Record<string, unknown>, of = model) =>
	readChatRequest({ model: of.id, messages: [HELLO], ...body }, of);
const parts = (content: unknown[], of = model) =>
	readChatRequest({ model: of.id, messages: [{ role: "user", content }] }, of);

describe("an optional field of a chat request", () => {
	test("that is null counts as absent", () => {
		const { model: _, messages: __, ...optional } = ChatRequestBody.properties;
		const ask = read(Object.fromEntries([...Object.keys(optional), "anything"].map((name) => [name, null])));
		expect(Object.keys(ask.fields)).toEqual([]);
		expect(ask.ignored).toEqual([]);
		expect(ask).toMatchObject({
			stream: false,
			includeUsage: false,
			choices: 1,
			maxOutputTokens: model.maxOutputTokens,
		});
	});

	test("`type` of a tool defaults to `function`", () => {
		const parameters = { type: "object", properties: {} };
		const tools = [{ function: { name: "weather" } }, { type: "custom", custom: { name: "other" } }];
		expect(read({ tools }).fields.tools).toEqual([
			{ type: "function", function: { name: "weather", parameters } },
			tools[1],
		]);
	});

	test("is named in the error if the model rejects it", () => {
		const strict = modelOver([], { unsupportedParameters: "reject", parameters: new Set() });
		expect(() => read({ temperature: 1 }, strict)).toThrow(
			expect.objectContaining({ code: "unsupported_parameter", param: "temperature" }),
		);
		expect(() => read({ max_tokens: 5 }, strict)).toThrow(expect.objectContaining({ param: "max_tokens" }));
		expect(read({ temperature: null, stream: true, stream_options: { include_usage: true } }, strict).ignored).toEqual(
			[],
		);
	});

	test("has no effect if its name is a property of Object.prototype", () => {
		const body = JSON.parse('{"__proto__":{"temperature":9},"constructor":1,"toString":"x"}');
		const ask = read(body);
		expect(Object.keys(ask.fields)).toEqual([]);
		expect(({} as Record<string, unknown>).temperature).toBeUndefined();
	});
});

describe("the output limit of a chat request", () => {
	test("is the smaller of the client's limit and the model's limit", () => {
		expect(read({ max_tokens: 5 }).maxOutputTokens).toBe(5);
		expect(read({ max_tokens: 5, max_completion_tokens: 7 }).maxOutputTokens).toBe(7);
		expect(read({ max_tokens: 1e300 }).maxOutputTokens).toBe(model.maxOutputTokens);
		expect(read({}).maxOutputTokens).toBe(model.maxOutputTokens);
	});

	test("is the model's limit if the model does not support max_tokens", () => {
		const deaf = modelOver([], { parameters: new Set() });
		expect(read({ max_tokens: 5 }, deaf)).toMatchObject({
			maxOutputTokens: deaf.maxOutputTokens,
			ignored: ["max_tokens"],
		});
		expect(read({ n: 3 }, deaf)).toMatchObject({ choices: 1, ignored: ["n"] });
		expect(read({ n: 1 }, deaf).ignored).toEqual([]);
	});
});

describe("a content part of a chat message", () => {
	test("keeps only the fields that its type has", () => {
		const content = [
			{
				type: "text",
				text: "a",
				video_url: { url: "http://10.0.0.1/" },
				cache_control: { type: "ephemeral" },
				uuid: "1",
			},
			{
				type: "image_url",
				image_url: { url: "data:image/png;base64,AA==", detail: "low", extra: 1 },
				audio_url: { url: "http://10.0.0.1/" },
			},
			{ type: "input_audio", input_audio: { data: "AA==", format: "wav", url: "http://10.0.0.1/" } },
		];
		const ask = parts(content, seeing("data_only"));
		expect(ask.prompt.value).toEqual([
			{
				role: "user",
				content: [
					{ type: "text", text: "a" },
					{ type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
					{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
				],
			},
		]);
	});

	test("whose URL a server would fetch is refused", () => {
		for (const type of ["video_url", "audio_url", "image", "image_embeds", "file", "document", "", "TEXT"]) {
			const part = { type, [type]: { url: "http://169.254.169.254/" }, text: "x" };
			expect(() => parts([part], seeing("forward"))).toThrow(
				expect.objectContaining({ code: "invalid_request", param: "messages[0].content[0].type" }),
			);
		}
	});

	test("is accepted with an http URL if the model permits it", () => {
		const image = (url: unknown) => [{ type: "image_url", image_url: { url } }];
		expect(() => parts(image("https://example.com/a.png"), seeing("data_only"))).toThrow();
		expect(parts(image("https://example.com/a.png"), seeing("forward")).prompt.value).toHaveLength(1);
		for (const url of ["file:///etc/passwd", "ftp://x/", "gopher://x", "//x/a.png", "", " data:,", 5, null, { a: 1 }])
			expect(() => parts(image(url), seeing("forward"))).toThrow(expect.objectContaining({ code: "invalid_request" }));
		expect(() => parts(image("data:,"), seeing("reject"))).toThrow();
		expect(() => parts(image("data:,"))).toThrow();
	});
});

describe("a long chat message", () => {
	const LONG = "a line of text\n".repeat(2_000);
	const readLong = (messages: string, of = model) => {
		const text = `{"model":"${of.id}","messages":${messages},"max_tokens":5}`;
		const raw = (checkJsonStructure(text, "messages") as JsonStructure).field();
		const short = shortenTexts(text, raw);
		return readChatRequest(JSON.parse(short.text), of, raw, short.leftOut);
	};
	const readText = (messages: string) => readLong(messages).prompt.text;
	const user = (more: string) => `{"role":"user",${more}"content":${JSON.stringify(LONG)}}`;

	test("is sent unchanged, spaces and escapes included", () => {
		const messages = `[ {"role" : "system","content":"\\u00fc"}, ${user('"name":"n",')} ]`;
		expect(readText(messages)).toBe(messages);
	});

	test("is measured and hashed as if it were parsed completely", () => {
		const line = `${"a line of prose, ".repeat(12)}\\n`;
		const text = line.repeat(60);
		const image = '{"type":"image_url","image_url":{"url":"data:,AA"}}';
		const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{${text}}"}}`;
		const passing = [
			`"content":"${text}"`,
			`"content":"${text}","name":null,"tool_calls":null,"refusal":null,"annotations":[]`,
			`"content":"${text}","reasoning_content":"${text}é","refusal":"no"`,
			`"content":[{"type":"text","text":"${text}"},{"text":"${text}","type":"text"}]`,
			`"content":[{"type":"text","text":"${text}"},${image}]`,
			`"content":"${text}","tool_calls":[${call}]`,
		];
		const others = [
			`"content":"${text}","reasoning_content":"${text}é","reasoning":"x"`,
			`"content":"${text}","reasoning_text":"x"`,
			`"content":"${text}","reasoning_text":null`,
			`"content":"${text}","reasoning_text":[]`,
			`"content":"${text}","annotations":[[]]`,
			`"content":"${text}","annotations":"x"`,
			`"content":"${text}","annotations":{}`,
			`"content":"${text}","reasoning_content":"x","reasoning_content":"y"`,
			`"content":"${text}","reasoning_content":["x"]`,
			`"content":"${text}","refusal":[]`,
			`"content":"${text}","content":"a name twice"`,
			`"content":[{"type":"text","text":"${text}","text":"a name twice"}]`,
			`"content":[{"type":"text","text":"${text}","cache_control":{"type":"ephemeral"}}]`,
			`"content":[{"type":"text","text":"${text}","image_url":{"url":"http://10.0.0.1/"}}]`,
			`"content":"${text}","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"","text":"${text}"}}]`,
			`"content":"${text}","tool_calls":[{"id":"c","id":"d","type":"function","function":{"name":"f","arguments":""}}]`,
			`"content":"${text}","tool_calls":[${call.replace('}"}}', '"}}')}]`,
			`"content":"${text}","tool_calls":[{"id":"c","content":"${text}"}]`,
			`"content":"${text}","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":1e2}}]`,
			`"content":"${text}","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"text":"${text}"}}}]`,
		];
		const sees = seeing("forward");
		for (const fields of [...passing, ...others]) {
			const messages = `[${Array(5).fill(`{"role":"assistant",${fields}}`).join(",")}]`;
			const whole = readChatRequest({ model: sees.id, messages: JSON.parse(messages), max_tokens: 5 }, sees);
			const { measure, prompt } = readLong(messages, sees);
			expect(measure).toEqual(whole.measure);
			expect(prompt.text).toBe(passing.includes(fields) ? messages : undefined);
			if (prompt.text === undefined) expect(prompt.value).toEqual(whole.prompt.value);
		}
	});

	test("with characters beyond ASCII reserves credit for its highest token count", () => {
		const text = ["\u{FDFA}", "–", "😀"]
			.map((sign) => "a line of prose, ".repeat(35) + sign)
			.join("")
			.repeat(15);
		const messages = `[{"role":"user","content":"${text}"},{"role":"user","content":[{"type":"text","text":"${text}"}]}]`;
		const { measure, prompt } = readLong(messages);
		expect(prompt.text).toBe(messages);
		expect(JSON.stringify(prompt.value).length).toBeLessThan(text.length);
		expect(measure.textBytes).toBe(2 * (Buffer.byteLength(text) + "user".length));
		const added = 2 * (Buffer.byteLength(text.normalize("NFKC")) - Buffer.byteLength(text));
		expect(measure.addedBytes).toBeWithin(added, measure.textBytes / 8);
		const plain = readLong(messages, modelOver([], { textNormalization: "none" }));
		expect(plain.measure).toMatchObject({ textBytes: measure.textBytes, addedBytes: 0 });
	});

	test("is parsed and serialized again if it is short", () => {
		expect(readText('[{"role":"user","content":"hello"}]')).toBeUndefined();
	});

	test("is parsed and serialized again if some of its content is not checked", () => {
		const image = '[{"type":"video_url","video_url":{"url":"http://10.0.0.1/"}}]';
		expect(readText(`[${user(`"content":${image},`)}]`)).toBeUndefined();
		expect(readText(`[${user('"Content":"x",')}]`)).toBeUndefined();
		expect(readText(`[${user('"reasoning_text":"x",')}]`)).toBeUndefined();
		expect(readText(`[${user('"\\u0063ontent":"x",')}]`)).toBeUndefined();
		expect(readText(`[${user("")}],"messages":[${user("")}]`)).toBe(`[${user("")}]`);
	});
});
