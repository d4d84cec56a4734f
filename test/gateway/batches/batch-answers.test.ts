import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { createBatchAnswers } from "../../../src/gateway/batches/batch-answers.ts";
import { createBodyReads } from "../../../src/gateway/body/body-reads.ts";
import { invalidApiKey } from "../../../src/keys/bearer.ts";
import { plainKey } from "../../support/plain-key.ts";
import { createManualClock } from "../../support/upstream-clock.ts";

test("a key revoked while the body arrives creates no batch", async () => {
	let created = 0;
	const batches = { areOffered: () => true, create: async () => (created += 1) };
	const answers = createBatchAnswers({ batches: batches as never, bodyReads: createBodyReads(systemClock) });
	const body = { input_file_id: "file_1", endpoint: "/v1/chat/completions", completion_window: "24h" };
	const request = new Request("http://test.example/v1/batches", { method: "POST", body: JSON.stringify(body) });
	const connection = { request, address: "", setIdleTimeout() {} };
	const checkAgain = () => Promise.reject(invalidApiKey());
	request.headers.set("content-type", "application/json");
	const call = { connection, url: request.url, key: plainKey(), requestId: "req_1", checkAgain };
	await expect(answers.create(call)).rejects.toMatchObject({ code: "invalid_api_key" });
	expect(created).toBe(0);
});

test("a slow body occupies a slot of its account, not of its address", async () => {
	const clock = createManualClock();
	const bodyReads = createBodyReads(clock);
	const answers = createBatchAnswers({ batches: { areOffered: () => true } as never, bodyReads });
	const request = new Request("http://test.example/v1/batches", { method: "POST", body: new ReadableStream() });
	const connection = { request, address: "192.0.2.1", setIdleTimeout() {} };
	const call = { connection, url: request.url, key: plainKey(), requestId: "req_1", checkAgain: async () => {} };
	const created = answers.create(call as never);
	for (let moment = 0; moment < 3; moment += 1) clock.advance(100);
	expect([bodyReads.slow.of(plainKey().accountId), bodyReads.slow.all()]).toEqual([1, 1]);
	bodyReads.letGo();
	await expect(created).rejects.toMatchObject({ code: "service_unavailable" });
});
