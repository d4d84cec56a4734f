/** Inputs that are made to cost more than they are, through the whole service. What they take: `bun run bench:uploads`. */
import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { withBatches } from "./batch-service.ts";

const MB = 1024 * 1024;
const BOMB_BYTES = 64 * MB;
const ENDLESS_BYTES = 24 * MB;
const batches = await withBatches();
const { service, upstream } = batches;
const { secret } = await service.customer();

test("a packed bomb is refused as a body and fails as a file; neither is unpacked", async () => {
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

test("a file of one endless line fails for it, and nothing is sent", async () => {
	const endless = new Uint8Array(ENDLESS_BYTES).fill(120);
	const batch = await batches.run(secret, endless);
	expect(batch.status).toBe("failed");
	expect(batch.errors?.data).toMatchObject([{ code: "line_too_long", line: 1 }]);
	expect(upstream.requests).toEqual([]);
});
