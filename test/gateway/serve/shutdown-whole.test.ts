import { expect, test } from "bun:test";
import { ask } from "../../support/chat.ts";
import { openRaw, parseRaw } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream("vllm");
const model = (id: string) =>
	`${chatModel({ id, url: upstream.url, dialect: "vllm" })}\n        max_concurrency: 1`.replace(
		"[chat, completions]",
		"[chat, completions, batch]",
	);
const service = await withService({
	models: `${["held", "asked", "crowded", "first", "second", "repeated"].map(model).join("\n")}
  - id: heard
    kind: transcription
    rates: { audio_second: "0.0001" }
    upstreams: [{ url: "${upstream.url}", model: served-name, dialect: vllm }]
routes:
  - { id: in-turn, models: [first, second] }`,
	env: { DRAIN_S: "1" },
});

const PATH = "/v1/chat/completions";

test("a gateway's stop answers every waiting request with a 503 that costs nothing", async () => {
	const { accountId, secret } = await service.customer();
	// Loads the key into memory, because a request that waits for its key at the stop would not read its body.
	await service.get("/v1/key", secret);
	const open = async (body: object, headers?: Record<string, string>) =>
		service.openChat(secret, { ...ask(), ...body }, headers);
	const sent = async (...args: Parameters<typeof open>) => {
		upstream.next(reply().hang());
		const nth = upstream.requests.length + 1;
		const client = await open(...args);
		await upstream.waitForRequest(nth);
		return client;
	};
	const repeated = { "idempotency-key": "one" };
	const half = (path: string, headers: string, part: string) =>
		openRaw(
			service.url,
			`POST ${path} HTTP/1.1\r\nhost: test.example\r\nauthorization: Bearer ${secret}\r\n${headers}\r\n\r\n${part}`,
		);
	const JSON_TYPE = "content-type: application/json\r\n";
	const clients = {
		"the rest of its body": await half(PATH, `${JSON_TYPE}content-length: 100`, '{"model":'),
		"the rest of a long body": await half(PATH, `${JSON_TYPE}content-length: 9000000`, '{"model":'),
		"the rest of a body without a length": await half(
			PATH,
			`${JSON_TYPE}transfer-encoding: chunked`,
			'9\r\n{"model":\r\n',
		),
		"the rest of a body that is repeated": await half(
			PATH,
			`${JSON_TYPE}idempotency-key: half\r\ncontent-length: 100`,
			'{"model":',
		),
		"the rest of a file": await half(
			"/v1/files",
			"content-type: multipart/form-data; boundary=b\r\ncontent-length: 5000",
			'--b\r\ncontent-disposition: form-data; name="file"; filename="x.jsonl"\r\n\r\n{',
		),
		"the rest of a recording": await half(
			"/v1/audio/transcriptions",
			"content-type: multipart/form-data; boundary=b\r\ncontent-length: 5000",
			'--b\r\ncontent-disposition: form-data; name="file"; filename="x.wav"\r\n\r\nRIFF',
		),
		"its model's answer": await sent({ model: "asked" }),
		"the first event of a stream": await sent({ model: "held", stream: true }),
		"the place of a request before it": [await sent({ model: "crowded" }), await open({ model: "crowded" })],
		"the first model of a route": await sent({ model: "in-turn" }),
		"what becomes of the request that it repeats": [
			await sent({ model: "repeated" }, repeated),
			await open({ model: "repeated" }, repeated),
		],
	};
	await waitFor(async () => {
		const metrics = await (await service.get("/metrics")).text();
		return /^tollgate_requests_open\S* 14$/m.test(metrics) && /^tollgate_requests_waiting\S* 1$/m.test(metrics);
	}, "all to wait");

	await service.app.stop();

	for (const [waitsFor, those] of Object.entries(clients))
		for (const client of [those].flat()) {
			const { status, headers, body } = parseRaw(await client.ended());
			const { code, type } = JSON.parse(body).error;
			expect([waitsFor, status, headers.get("retry-after"), code, type]).toEqual([
				waitsFor,
				503,
				"1",
				"service_unavailable",
				"server_error",
			]);
		}
	const rows = await service.usage(accountId);
	expect(rows.map(({ ending, status, charged_nano_usd }) => `${ending} ${status} ${charged_nano_usd}`)).toEqual(
		Array.from({ length: 6 }, () => "shutdown 503 0"),
	);
	expect(Number((await service.balance(accountId)).held)).toBe(0);
	await waitFor(() => upstream.open() === 0, "the upstream to be let go");
});
