import { expect, test } from "bun:test";
import { reply } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { chatLine, isOver, withBatches } from "./batch-service.ts";

const batches = await withBatches({ dialect: "vllm", maxConcurrency: 1 });
const { service, upstream } = batches;

test("a direct request takes the only place from a batch line, which is charged once", async () => {
	const batch = await service.customer();
	const other = await service.customer();
	const gate = Promise.withResolvers<void>();
	upstream.decide((body) =>
		JSON.stringify(body).includes("interactive") || upstream.requests.length > 1
			? reply().text("fine").usage({ prompt: 4, completion: 2 })
			: reply().text("never").behind(gate.promise),
	);
	const { id } = await batches.create(batch.secret, await batches.upload(batch.secret, [chatLine("line")]));
	await waitFor(() => upstream.requests.length === 1, "the line to be sent");
	const body = { model: "test-model", max_tokens: 4, messages: [{ role: "user", content: "interactive" }] };
	const response = await service.chat(other.secret, body);
	expect(response.status).toBe(200);
	await upstream.waitForAbort(1);
	const done = await batches.until(batch.secret, id, isOver, "over");
	gate.resolve();
	expect(done.request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
	expect(
		upstream.requests.map(({ headers }) => headers.get("x-request-id")).filter((id, at, all) => all.indexOf(id) !== at),
	).toHaveLength(1);
	await service.settled();
	const usage = await service.usage(batch.accountId);
	expect(usage.map((row) => [row.ending, Number(row.charged_nano_usd)])).toEqual([["finished", 4 * 500 + 2 * 1_000]]);
}, 30_000);
