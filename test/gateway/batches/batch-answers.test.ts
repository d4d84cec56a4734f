import { expect, mock, test } from "bun:test";
import { createBatchAnswers } from "../../../src/gateway/batches/batch-answers.ts";
import { createBodyReads } from "../../../src/gateway/body/body-reads.ts";
import { invalidApiKey } from "../../../src/keys/bearer.ts";
import { plainKey } from "../../support/plain-key.ts";
import { createManualClock } from "../../support/upstream-clock.ts";

test("a key that is revoked while the body arrives creates no batch", async () => {
	const create = mock();
	const batches = { areOffered: () => true, create } as never;
	const answers = createBatchAnswers({ batches, bodyReads: createBodyReads(createManualClock()) });
	const body = JSON.stringify({ input_file_id: "f", endpoint: "/v1/chat/completions", completion_window: "24h" });
	const headers = { "content-type": "application/json" };
	const request = new Request("http://test.example/v1/batches", { method: "POST", headers, body });
	const connection = { request, address: "", setIdleTimeout() {} };
	const checkAgain = () => Promise.reject(invalidApiKey());
	const call = { connection, url: request.url, key: plainKey(), requestId: "req_1", checkAgain };
	await expect(answers.create(call)).rejects.toMatchObject({ code: "invalid_api_key" });
	expect(create).not.toHaveBeenCalled();
});

test("a slow request body occupies a slot of its account, not of its address", async () => {
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
