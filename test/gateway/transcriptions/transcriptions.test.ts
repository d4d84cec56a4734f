import { expect, test } from "bun:test";
import type { DialectName } from "../../../src/catalog/model.ts";
import { onlyUsage } from "../../support/chat.ts";
import { withService } from "../../support/service.ts";
import {
	brokenSse,
	deployment,
	type EndpointServer,
	SECRET_WORDS,
	wavOf,
	withEndpoints,
} from "../../support/upstream-endpoints.ts";

const DIALECTS: DialectName[] = ["openai", "vllm", "llama.cpp"];
const servers = new Map(DIALECTS.map((dialect) => [dialect, withEndpoints(dialect)]));
const server = (dialect: DialectName) => servers.get(dialect) as EndpointServer;
const service = await withService({
	models: [
		...DIALECTS.map((dialect) =>
			deployment({
				id: `audio-${dialect}`,
				kind: "transcription",
				url: server(dialect).url,
				dialect,
				rates: 'audio_second: "0.0001"',
				parameters: "language, prompt, timestamp_granularities",
			}),
		),
		deployment({
			id: "audio-tokens",
			kind: "transcription",
			url: server("vllm").url.replace("127.0.0.1", "localhost"),
			rates: 'input: "6", output: "10"',
		}),
	].join("\n"),
	limits: "  breaker_failures_in_row: 100",
});

const only = (accountId: string) => onlyUsage(service, accountId);

function form(model: string, fields: Record<string, string | string[]> = {}, seconds = 9): FormData {
	const body = new FormData();
	// The file precedes the model, as SDKs order the form's fields.
	body.append("file", new File([wavOf(seconds)], "../../talk.wav"));
	for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) body.append(name, one);
	body.append("model", model);
	return body;
}
const post = (secret: string, body: FormData) => service.post("/v1/audio/transcriptions", secret, body);

test.each(DIALECTS)("dialect %s returns JSON, priced by the seconds that the server reports", async (dialect) => {
	const { secret, accountId } = await service.customer();
	const fields = {
		language: "en",
		prompt: "names",
		"timestamp_granularities[]": ["word", "segment"],
		temperature: "0.5",
		response_format: "",
	};
	const response = await post(secret, form(`audio-${dialect}`, fields));
	const text = await response.text();
	expect(response.status).toBe(200);
	expect(text).not.toMatch(SECRET_WORDS);
	expect(response.headers.get("x-ignored-parameters")).toBe("temperature");
	expect(JSON.parse(text)).toEqual({
		text: "Hello there, big world.",
		usage: { type: "duration", seconds: 7, cost: 0.0007, basis: "exact" },
	});
	expect(await only(accountId)).toMatchObject({
		endpoint: "transcription",
		charged: 700_000,
		// The reservation is for nine seconds, the length in the file's header.
		reserved: 900_000,
		units: 7,
		basis: "exact",
	});
	const seen = server(dialect).requests.at(-1);
	expect(seen?.body).toEqual({
		model: "served-name",
		response_format: "json",
		language: "en",
		prompt: "names",
		"timestamp_granularities[]": ["word", "segment"],
	});
	expect(seen?.file?.name).toBe("talk.wav");
	const sent = new Uint8Array((await seen?.file?.arrayBuffer()) ?? []);
	expect(Buffer.from(sent).equals(Buffer.from(wavOf(9)))).toBe(true);
});

test.each(DIALECTS)("dialect %s returns verbose_json, text, srt and vtt", async (dialect) => {
	const { secret } = await service.customer();
	const ask = async (format: string) => {
		const response = await post(secret, form(`audio-${dialect}`, { response_format: format }));
		return { type: response.headers.get("content-type"), text: await response.text() };
	};
	const verbose = await ask("verbose_json");
	expect(verbose.text).not.toMatch(SECRET_WORDS);
	expect(JSON.parse(verbose.text)).toMatchObject({
		task: "transcribe",
		language: "en",
		duration: 6.7,
		segments: [{ id: 0, start: 0, end: 2.5, text: " Hello there," }, { id: 1 }],
		usage: { type: "duration", seconds: 7 },
	});
	expect(await ask("text")).toEqual({ type: "text/plain; charset=utf-8", text: "Hello there, big world.\n" });
	expect((await ask("srt")).text).toBe(
		"1\n00:00:00,000 --> 00:00:02,500\nHello there,\n\n2\n00:00:02,500 --> 00:00:06,700\nbig world.\n\n",
	);
	expect((await ask("vtt")).text).toBe(
		"WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nHello there,\n\n00:00:02.500 --> 00:00:06.700\nbig world.\n\n",
	);
});

test.each(DIALECTS)("dialect %s streams in OpenAI's format with one usage record", async (dialect) => {
	const { secret, accountId } = await service.customer();
	const text = await (await post(secret, form(`audio-${dialect}`, { stream: "true" }))).text();
	expect(text).not.toMatch(SECRET_WORDS);
	// vLLM's streams report tokens but no seconds, so the seconds are measured from the file.
	const [seconds, basis] = dialect === "vllm" ? [9, "estimated"] : [7, "exact"];
	const events = text.split("\n\n").filter(Boolean);
	expect(events.at(-1)).toBe("data: [DONE]");
	expect(events.slice(0, -1).map((event) => JSON.parse(event.slice(6)))).toEqual([
		...["Hello", " there,", " big", " world."].map((delta) => ({ type: "transcript.text.delta", delta })),
		{
			type: "transcript.text.done",
			text: "Hello there, big world.",
			usage: { type: "duration", seconds, cost: seconds / 10_000, basis },
		},
	]);
	expect(await only(accountId)).toMatchObject({ charged: seconds * 100_000, basis, streamed: true });
});

test("token rates of a transcription model charge the tokens that the server reports", async () => {
	const { secret, accountId } = await service.customer();
	const text = await (await post(secret, form("audio-tokens", { stream: "true" }))).text();
	const cost = 40 * 6_000 + 6 * 10_000;
	expect(text).toContain(
		`"usage":{"type":"tokens","input_tokens":40,"output_tokens":6,"total_tokens":46,"input_token_details":{"text_tokens":0,"audio_tokens":40},"cost":${cost / 1e9},"basis":"exact"}`,
	);
	expect(await only(accountId)).toMatchObject({ charged: cost, basis: "exact" });
});

test("a streamed transcription whose server dies is charged for the delivered words", async () => {
	const { secret, accountId } = await service.customer();
	const delta = JSON.stringify({ type: "transcript.text.delta", delta: "these are 20 bytes, " });
	server("openai").next(() => brokenSse([delta, delta]));
	const text = await (await post(secret, form("audio-openai", { stream: "true" }, 60))).text();
	expect(text).toContain('"code":"upstream_error"');
	expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
	expect(await only(accountId)).toMatchObject({ charged: 200_000, basis: "estimated", ending: "upstream_died" });
	server("vllm").next(() => brokenSse([delta, delta]));
	const tokens = await (await post(secret, form("audio-tokens", { stream: "true" }, 60))).text();
	// Two events count as two tokens, although the estimate from their bytes would be ten.
	expect(tokens).toContain('"output_tokens":2,');
});

test.each([{ usage: { type: "duration", seconds: 6_000 } }, {}])(
	"a transcription with the answer %j is charged by the file's length",
	async (more) => {
		const { secret, accountId } = await service.customer();
		server("openai").next(() => Response.json({ text: "hi", ...more }));
		const answer = await (await post(secret, form("audio-openai", {}, 5))).json();
		expect(answer.usage).toMatchObject({ type: "duration", seconds: 5, cost: 0.0005 });
		expect(await only(accountId)).toMatchObject({ reserved: 500_000, charged: 500_000, basis: "estimated" });
	},
);

test("a recording with contradictory headers is refused before it is sent", async () => {
	const { secret } = await service.customer();
	const before = server("openai").requests.length;
	const liar = Buffer.from(wavOf(12));
	liar.writeUInt32LE(32_000, 40);
	const body = new FormData();
	body.append("model", "audio-openai");
	body.append("file", new File([liar], "talk.wav"));
	const response = await post(secret, body);
	expect(response.status).toBe(400);
	expect((await response.json()).error).toMatchObject({ code: "invalid_request", param: "file" });
	expect(server("openai").requests.length).toBe(before);
});

test.each([
	["no file", "file", {}],
	["subtitles as a stream", "response_format", { response_format: "srt", stream: "true" }],
])("a transcription request with %s gets a 400 that names the field", async (_, param, fields) => {
	const { secret } = await service.customer();
	const body = form("audio-openai", fields);
	if (param === "file") body.delete("file");
	const response = await post(secret, body);
	expect([response.status, (await response.json()).error.param]).toEqual([400, param]);
});

test("JSON instead of a form gets 415, and a malformed form gets 400", async () => {
	const { secret } = await service.customer();
	expect((await service.post("/v1/audio/transcriptions", secret, { model: "audio-openai" })).status).toBe(415);
	const broken = await service.post("/v1/audio/transcriptions", secret, "no form", {
		headers: { authorization: `Bearer ${secret}`, "content-type": "multipart/form-data; boundary=x" },
	});
	expect(broken.status).toBe(400);
});

test("the gateway accepts a form without a content-length", async () => {
	const { secret } = await service.customer();
	const whole = new Response(form("audio-openai"));
	const response = await fetch(`${service.url}/v1/audio/transcriptions`, {
		method: "POST",
		headers: { authorization: `Bearer ${secret}`, "content-type": whole.headers.get("content-type") as string },
		body: whole.body,
	});
	expect(response.status).toBe(200);
});
