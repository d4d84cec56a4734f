/** Inputs whose processing costs more than their size suggests. `bun run bench:uploads` measures the cost. */
import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { chatLine, withBatches } from "./batch-service.ts";

const MB = 1024 * 1024;
const BOMB_BYTES = 64 * MB;
const ENDLESS_BYTES = 24 * MB;
const batches = await withBatches();
const { service, upstream } = batches;
const { secret } = await service.customer();

test("a decompression bomb is refused as body and as file before it is unpacked", async () => {
	const bomb = gzipSync(Buffer.alloc(BOMB_BYTES), { level: 1 });
	const form = new FormData();
	form.set("purpose", "batch");
	form.set("file", new File([bomb], "in.jsonl"));
	const { headers, body } = new Response(form);
	const refused = await fetch(`${service.url}/v1/files`, {
		method: "POST",
		headers: {
			authorization: `Bearer ${secret}`,
			"content-type": headers.get("content-type") ?? "",
			"content-encoding": "gzip",
		},
		body: gzipSync(await new Response(body).bytes()),
	});
	expect([refused.status, (await refused.json()).error.code]).toEqual([415, "unsupported_media_type"]);
	const batch = await batches.run(secret, bomb);
	expect(batch.status).toBe("failed");
	expect(batch.errors?.data[0]?.code).toBe("invalid_json_line");
});

test("an input file of one endless line fails its batch and sends nothing", async () => {
	const endless = new Uint8Array(ENDLESS_BYTES).fill(120);
	const batch = await batches.run(secret, endless);
	expect(batch.status).toBe("failed");
	expect(batch.errors?.data).toMatchObject([{ code: "line_too_long", line: 1 }]);
	expect(upstream.requests).toEqual([]);
});

test("text that Postgres cannot store is refused in a file and in a request", async () => {
	for (const model of ["half \ud800", "zero \0", `${"x".repeat(127)}😀`]) {
		const batch = await batches.run(secret, [chatLine("a", "a", { model }), chatLine("b")]);
		expect(batch.status).toBe("failed");
		expect(batch.errors?.data.map(({ code }) => code)).toEqual(["model_not_found", "model_mismatch"]);
		for (const { message } of batch.errors?.data ?? []) expect(message.isWellFormed()).toBe(true);
	}
	const fileId = await batches.upload(secret, [chatLine("a")]);
	for (const metadata of [{ note: "half \ud800" }, { "half \udc00": "note" }, { note: "zero \0" }]) {
		const body = { input_file_id: fileId, endpoint: "/v1/chat/completions", completion_window: "24h", metadata };
		const refused = await service.post("/v1/batches", secret, body);
		const { error } = (await refused.json()) as { error: unknown };
		expect([refused.status, error]).toMatchObject([400, { code: "invalid_request", param: "metadata" }]);
	}
});

test("each unusual `custom_id` appears in the output file once, unchanged", async () => {
	const names = [
		"\0",
		"x\0y",
		"\ud800",
		"\ud801",
		"\udc00",
		"\ufffd",
		"\u2028",
		"😀",
		"é",
		"e\u0301",
		"__proto__",
		"constructor",
	];
	names.push(" ", "\r", "\n", '"', "\\", "null", "x".repeat(512));
	const lines = names.map((name, at) => chatLine(name, `${at}`));
	const before = upstream.requests.length;
	const batch = await batches.run(secret, `\ufeff${lines.join("\r\n\r\n")}`);
	expect([batch.status, batch.errors]).toEqual(["completed", null]);
	const output = await batches.lines(secret, batch.output_file_id);
	expect(output.map(({ custom_id }) => custom_id).sort()).toEqual([...names].sort());
	expect(upstream.requests.length - before).toBe(names.length);
});

test("a query with text that Postgres cannot store fails at once and is not retried", async () => {
	const refused: [string, Promise<Response>][] = [
		"usage?model=%00",
		"usage?key=%00",
		"files?after=%00",
		"batches?after=%00",
	].map((path) => [path, service.get(`/v1/${path}`, secret)]);
	const batch = { input_file_id: "file_\0", endpoint: "/v1/chat/completions", completion_window: "24h" };
	refused.push(["a batch of a file", service.post("/v1/batches", secret, batch)]);
	for (const [what, asked] of refused) {
		const answer = await asked;
		expect([what, answer.status, (await answer.json()).error.code]).toEqual([what, 400, "invalid_request"]);
	}
});
