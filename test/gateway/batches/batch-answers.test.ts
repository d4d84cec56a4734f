import { expect, test } from "bun:test";
import { createBatchAnswers } from "../../../src/gateway/batches/batch-answers.ts";
import { createBodyReads } from "../../../src/gateway/body/body-reads.ts";
import { plainKey } from "../../support/plain-key.ts";
import { createManualClock } from "../../support/upstream-clock.ts";

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
