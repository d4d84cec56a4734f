/** Batches of a real process that is killed or loses its database, compared with the counts of the model server. */
import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { refundLostRequests } from "../../src/batch/lost-requests.ts";
import { type FleetMember, startFleet } from "../chaos/fleet.ts";
import { testsMayTake, untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { batchesAt, batchModel, chatLine, isOver, type ShownBatch } from "./batch-service.ts";

testsMayTake(240_000);

const ANSWER_MS = 150;
const WAIT_MS = 60_000;

const database = await withDatabase();
const upstream = withUpstream("vllm");
upstream.always(() => reply().text("fine").usage({ prompt: 4, completion: 1 }).delay(ANSWER_MS));
/** Requests that arrived for a line, by the text of their last message. */
const requestsOf = (line: string) =>
	upstream.requests.filter(({ body }) => (body.messages as { content: string }[]).at(-1)?.content === line);
const fleet = untilEnd(
	await startFleet({
		databaseUrl: database.url,
		upstreamUrl: upstream.url,
		instances: 1,
		model: `${batchModel(upstream.url)}\n        max_concurrency: 64`,
	}),
);
const member = fleet.members[0] as FleetMember;
const account = await fleet.account();
const { secret } = await fleet.key(account);
const batches = batchesAt(member.url);

async function started(name: string, count: number) {
	const names = Array.from({ length: count }, (_, at) => `${name} ${at}`);
	const file = await batches.upload(
		secret,
		names.map((line) => chatLine(line)),
	);
	const { id } = await batches.create(secret, file);
	const arrived = () => names.filter((line) => requestsOf(line).length > 0);
	return {
		id,
		names,
		arrived,
		/** Waits until at least this many lines have arrived at the model server and it is answering some of them. */
		until: (lines: number) =>
			waitFor(() => arrived().length >= lines && upstream.open() > 0, `${lines} lines to arrive`, WAIT_MS),
	};
}

async function ended(id: string): Promise<ShownBatch> {
	let last: ShownBatch | undefined;
	const look = async () => {
		last = await batches.get(secret, id).catch(() => undefined);
		return last !== undefined && isOver(last);
	};
	await waitFor(look, "the batch to be over", WAIT_MS);
	return last as ShownBatch;
}

/** Expects one answer for each line, and a charge only for the request that gave this answer. */
async function assertOnce({ id, names }: { id: string; names: readonly string[] }) {
	const batch = await ended(id);
	const output = await batches.lines(secret, batch.output_file_id);
	expect([batch.status, batch.error_file_id ?? null]).toEqual(["completed", null]);
	expect(output.map((line) => line.custom_id).sort()).toEqual([...names].sort());
	expect(output.filter((line) => requestsOf(line.custom_id).length === 0)).toEqual([]);
	const answered = output.map((line) => line.response?.request_id ?? "").sort();
	const paid = async () =>
		(
			await fleet.sql<{ id: string }[]>`
				select request_id::text as id from usage_event u where batch_id = ${id} and charged_nano_usd > 0
					and not exists (select 1 from ledger_entry e
						where e.source_ref = 'batch-lost:' || u.request_id and e.amount_nano_usd = u.charged_nano_usd)`
		)
			.map((row) => `req_${row.id.replaceAll("-", "")}`)
			.sort();
	const isPaidOnce = async () => {
		// Runs a job of the console, because this test has no console.
		await refundLostRequests(database.statements, silentLog);
		return Bun.deepEquals(await paid(), answered);
	};
	await waitFor(isPaidOnce, "each line to be paid once", WAIT_MS);
	return { sentAgain: names.filter((name) => requestsOf(name).length > 1).length };
}

/** Numbers of arrived lines after which the process is killed. */
const KILLED_AT = LONG ? [90, 200] : [50];

test("batch lines without a stored answer are sent again after kill -9, charged once", async () => {
	const batch = await started("killed", LONG ? 300 : 100);
	for (const lines of KILLED_AT) {
		await batch.until(lines);
		await member.crash();
		const process = await member.start();
		// The batch continues once the killed process has missed its heartbeats.
		await process.logged(({ message }) => message === "a batch is taken", "that it goes on");
	}
	const { sentAgain } = await assertOnce(batch);
	expect(sentAgain).toBeGreaterThan(0);
});

test("batch lines without a sealed answer are sent again; ended batches leave no rows", async () => {
	const over = await started("swept", 3);
	await ended(over.id);
	const batch = await started("unsealed", LONG ? 200 : 100);
	await batch.until(40);
	member.proxy.cut();
	const cutAtMs = performance.now();
	await waitFor(() => upstream.open() === 0, "what is under way to end", WAIT_MS);
	const unsealed = batch.arrived().filter((name) => requestsOf(name).some(({ atMs }) => atMs + ANSWER_MS > cutAtMs));
	expect(unsealed.length).toBeGreaterThan(0);
	await member.crash();
	member.proxy.restore();
	await member.start();
	expect((await assertOnce(batch)).sentAgain).toBeGreaterThanOrEqual(unsealed.length);
	const rows = async () => (await fleet.sql`select 1 from batch_line where batch_id <> ${batch.id} limit 1`).length;
	await waitFor(async () => (await rows()) === 0, "the lines of what is over to be removed", WAIT_MS);
});
