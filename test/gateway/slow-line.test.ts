/**
 * Bun by itself disconnects clients that send less than 16 KB/s for 12 seconds, or nothing between two requests. The
 * gateway must not.
 */
import { expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { openRaw, parseRaw, rawPost } from "../support/raw-http.ts";
import { chatModel, withService } from "../support/service.ts";
import { deployment, wavOf, withEndpoints } from "../support/upstream-endpoints.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const upstream = withUpstream("vllm");
const audio = withEndpoints("vllm");
const service = await withService({
	models: [
		chatModel({ url: upstream.url, dialect: "vllm" }),
		deployment({ id: "audio", kind: "transcription", url: audio.url, rates: 'audio_second: "0.0001"' }),
	].join("\n"),
});

const CRLF = Buffer.from("\r\n");
/** Opens this connection first, so that it is idle while the other tests run. */
const { secret: idle } = await service.customer();
const kept = await service.openChat(idle, ask());
await kept.until('"usage"');

/** Sends 1 KB a second for longer than Bun's timeout of 12 s. */
const STEPS = 15;
const STEP_MS = 1_000;
const TEXT = JSON.stringify(ask("one two three", { user: "u".repeat(STEPS * 1_000) }));

interface Sent {
	readonly path: string;
	readonly type: string;
	readonly body: Buffer;
	readonly headers?: Record<string, string>;
}

async function formOf(): Promise<Sent> {
	const form = new FormData();
	form.append("file", new File([wavOf(1)], "talk.wav"));
	form.append("model", "audio");
	const sent = new Response(form);
	const type = sent.headers.get("content-type") ?? "";
	return { path: "/v1/audio/transcriptions", type, body: Buffer.from(await sent.arrayBuffer()) };
}

const chat: Sent = { path: "/v1/chat/completions", type: "application/json", body: Buffer.from(TEXT) };

async function sendSlowly(secret: string, { path, type, body, headers = {} }: Sent): Promise<number> {
	const isChunked = headers["transfer-encoding"] === "chunked";
	const all: Record<string, string> = {
		host: "test.example",
		authorization: `Bearer ${secret}`,
		"content-type": type,
		connection: "close",
		...(isChunked ? {} : { "content-length": String(body.length) }),
		...headers,
	};
	const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
	const client = await openRaw(service.url, `POST ${path} HTTP/1.1\r\n${head.join("")}\r\n`);
	const size = Math.ceil(body.length / STEPS);
	for (let at = 0; at < body.length; at += size) {
		await Bun.sleep(STEP_MS);
		const piece = body.subarray(at, at + size);
		client.write(isChunked ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, CRLF]) : piece);
	}
	if (isChunked) client.write("0\r\n\r\n");
	return parseRaw(await client.ended()).status;
}

test("the gateway accepts each kind of request body from a client that sends slowly", async () => {
	const { secret } = await service.customer();
	const ways: Sent[] = [
		chat,
		{ ...chat, headers: { "transfer-encoding": "chunked" } },
		{ ...chat, headers: { "idempotency-key": "slow" } },
		await formOf(),
	];
	expect(await Promise.all(ways.map((way) => sendSlowly(secret, way)))).toEqual(ways.map(() => 200));
}, 60_000);

test("the gateway answers on a connection that was idle for a long time", async () => {
	kept.write(rawPost("/v1/chat/completions", idle, ask("again")));
	await waitFor(() => kept.text().split("HTTP/1.1 200").length === 3, "the second answer");
});
