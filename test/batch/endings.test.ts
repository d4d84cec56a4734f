import { beforeEach, expect, test } from "bun:test";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { payIn } from "../support/paid-account.ts";
import { reply } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { chatLine, isOver, withBatches } from "./batch-service.ts";

/** Batch lines may use three of the four places; the fourth stays free for other requests. */
const batches = await withBatches({ maxConcurrency: 4 });
const { service, upstream } = batches;
const AT_ONCE = 3;
const LINES = 10;
const input = Array.from({ length: LINES }, (_, at) => chatLine(`line-${at}`));
/** Reservation and cost of one line in nano-dollars. */
const COST = 4 * 500 + 2 * 1_000;

let gate = Promise.withResolvers<void>();
beforeEach(() => {
	gate = Promise.withResolvers<void>();
	upstream.decide(() => reply().text("an answer").usage({ prompt: 4, completion: 2 }).behind(gate.promise));
});

/** Creates an account with credit for a few lines: once `charged` is spent, no further line can be reserved. */
async function creditFor(charged: number): Promise<number> {
	const { secret, accountId } = await service.customer();
	gate.resolve();
	await batches.run(secret, input.slice(0, 1));
	await service.settled();
	const [row] = await service.usage(accountId);
	return Number(row?.reserved_nano_usd) + (charged - 1) * COST;
}

async function begun(secret: string) {
	const sent = upstream.requests.length;
	const { id } = await batches.create(secret, await batches.upload(secret, input));
	await waitFor(() => upstream.requests.length === sent + AT_ONCE, "the first lines to be under way");
	return { id, sent: () => upstream.requests.length - sent };
}

/** Expects one outcome for each line: an answer, or an error with this code. */
async function assertOutcomes(secret: string, batch: Awaited<ReturnType<typeof batches.get>>, code: string) {
	const output = await batches.lines(secret, batch.output_file_id);
	const error = await batches.lines(secret, batch.error_file_id);
	expect(output.length).toBe(batch.request_counts.completed);
	expect(error.map((line) => line.error?.code)).toEqual(Array(batch.request_counts.failed).fill(code));
	expect(error.every(({ response }) => response === null)).toBe(true);
	const names = [...output, ...error].map(({ custom_id }) => custom_id).sort();
	expect(names).toEqual(input.map((_, at) => `line-${at}`).sort());
}

test("a cancelled batch settles the lines already sent, and sends no more lines", async () => {
	const { secret, accountId } = await service.customer();
	const { id, sent } = await begun(secret);
	expect(await (await batches.cancel(secret, id)).json()).toMatchObject({ status: "cancelling" });
	expect(await (await batches.cancel(secret, id)).json()).toMatchObject({ status: "cancelling" });
	gate.resolve();
	const batch = await batches.until(secret, id, isOver, "over");
	expect(batch).toMatchObject({ status: "cancelled", request_counts: { total: LINES }, paused: null });
	expect(batch.cancelled_at).toBeNumber();
	expect(batch.request_counts.completed).toBe(sent());
	expect(sent()).toBeGreaterThanOrEqual(AT_ONCE);
	expect(sent()).toBeLessThan(LINES);
	await assertOutcomes(secret, batch, "batch_cancelled");
	await service.settled();
	const usage = await service.usage(accountId);
	expect(usage.map((row) => Number(row.charged_nano_usd))).toEqual(Array(sent()).fill(COST));
	expect((await batches.cancel(secret, id)).status).toBe(409);
});

test("an expired batch keeps its answers and lists unanswered lines in the error file", async () => {
	const { secret } = await service.customer();
	const { id, sent } = await begun(secret);
	await service.db.sql`update batch set expires_at = clock_timestamp() - interval '1 minute' where id = ${id}`;
	// The batch learns of its cancellation when it stores progress. The progress after that proves that it sent nothing.
	const told = async () => (await service.db.sql`select xmin::text as by from batch where id = ${id}`)[0]?.by;
	for (let times = 0; times < 2; times++) {
		const before = await told();
		await waitFor(async () => (await told()) !== before, "the batch to tell how far it is");
	}
	gate.resolve();
	const batch = await batches.until(secret, id, isOver, "over");
	expect(batch).toMatchObject({ status: "expired", request_counts: { total: LINES, completed: sent() } });
	expect(batch.expired_at).toBeNumber();
	await assertOutcomes(secret, batch, "batch_expired");
});

test("a revoked key cancels its batches, and lines already sent are settled", async () => {
	const { accountId } = await service.customer();
	const { id: keyId, secret } = await service.key(accountId);
	const sibling = await service.key(accountId);
	const { id, sent } = await begun(secret);
	await revokeKey(service.db.statements, { id: keyId });
	await waitFor(async () => (await service.get("/v1/key", secret)).status === 401, "the key to be refused");
	const admitted = sent();
	gate.resolve();
	const batch = await batches.until(sibling.secret, id, isOver, "over");
	expect(sent()).toBe(admitted);
	expect(batch).toMatchObject({
		status: "cancelled",
		request_counts: { total: LINES, completed: admitted },
		errors: { data: [{ code: "api_key_revoked", line: null }] },
	});
	await assertOutcomes(sibling.secret, batch, "batch_cancelled");
});

test("a batch without credit pauses and continues after a top-up", async () => {
	const { secret, accountId } = await service.customer({ exactCredit: await creditFor(4) });
	const { id } = await batches.create(secret, await batches.upload(secret, input));
	const paused = await batches.until(secret, id, (batch) => batch.paused !== null, "paused");
	expect(paused).toMatchObject({ status: "in_progress", paused: { code: "insufficient_quota" } });
	await batches.until(secret, id, (batch) => batch.request_counts.completed === 4, "as far as its credit goes");
	await payIn(service.db.statements, accountId);
	const batch = await batches.until(secret, id, isOver, "over");
	expect(batch).toMatchObject({ status: "completed", paused: null, request_counts: { completed: LINES, failed: 0 } });
	await assertOutcomes(secret, batch, "");
	await service.settled();
	const usage = await service.usage(accountId);
	expect(usage.filter((row) => Number(row.charged_nano_usd) > 0)).toHaveLength(LINES);
	expect((await service.balance(accountId)).spent).toBe(nanoUsd(LINES * COST));
}, 30_000);

test("a batch pauses when its key reaches its cap", async () => {
	const { accountId } = await service.customer();
	const { secret } = await service.key(accountId, { capNanoUsd: nanoUsd(await creditFor(4)) });
	const { id } = await batches.create(secret, await batches.upload(secret, input));
	const paused = await batches.until(secret, id, (batch) => batch.paused !== null, "paused");
	expect(paused.paused?.code).toBe("key_cap_exceeded");
	await batches.cancel(secret, id);
	expect(await batches.until(secret, id, isOver, "over")).toMatchObject({ status: "cancelled" });
});

test("a batch's error file lists refused lines and lines that failed three times", async () => {
	gate.resolve();
	const { secret, accountId } = await service.customer();
	upstream.decide((body) =>
		JSON.stringify(body).includes("broken")
			? reply().errorStatus(500)
			: reply().text("fine").usage({ prompt: 4, completion: 2 }),
	);
	const sent = upstream.requests.length;
	const batch = await batches.run(secret, [
		chatLine("fine"),
		chatLine("wrong", "x", { temperature: 99 }),
		chatLine("broken", "broken"),
	]);
	expect(batch).toMatchObject({ status: "completed", request_counts: { total: 3, completed: 1, failed: 2 } });
	const [output] = await batches.lines(secret, batch.output_file_id);
	expect(output?.custom_id).toBe("fine");
	const errors = new Map((await batches.lines(secret, batch.error_file_id)).map((line) => [line.custom_id, line]));
	expect(errors.get("wrong")).toMatchObject({
		response: { status_code: 400, body: { error: { code: "invalid_request", param: "temperature" } } },
		error: null,
	});
	expect(errors.get("broken")).toMatchObject({ response: { status_code: 502 }, error: null });
	expect(upstream.requests.length - sent).toBe(1 + 3);
	await service.settled();
	expect((await service.balance(accountId)).spent).toBe(nanoUsd(COST));
}, 30_000);
