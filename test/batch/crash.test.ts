import { expect, setSystemTime, test } from "bun:test";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { hasBatchEnded } from "../../src/batch/batch-record.ts";
import { createBatches } from "../../src/batch/batches.ts";
import { refundLostRequests } from "../../src/batch/lost-requests.ts";
import { createOutcomeWriter } from "../../src/batch/outcomes.ts";
import type { CatalogSnapshot } from "../../src/catalog/model.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { nanoUsd, ZERO_USD } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { chatLine } from "./batch-service.ts";
import { COST, createCrashWorld, keyOwner } from "./crash-world.ts";

const db = await withDatabase();
const owner = await keyOwner(db);
const SEEDS = LONG ? 24 : 8;
const random = (seed: number) => createRandom(seed).fraction;

const requestIds = (lines: readonly { response: { request_id: string } }[]) =>
	lines.map(({ response }) => response.request_id).sort();

/** Expects one answer for each line, and a charge only for the request that gave this answer. */
async function assertOnce(world: ReturnType<typeof createCrashWorld>, id: string, names: readonly string[]) {
	const batch = await world.find(id);
	const output = await world.lines(batch.outputFileId);
	expect(batch.errorFileId).toBeNull();
	expect(output.map(({ custom_id }) => custom_id).sort()).toEqual([...names].sort());
	for (const line of output) expect(line.response.body).toEqual({ answer: line.custom_id });
	expect(await world.paid()).toEqual(requestIds(output));
	expect(batch).toMatchObject({
		state: "completed",
		total: names.length,
		completed: output.length,
		failed: 0,
		// Includes the usage of lines that earlier runs sent.
		promptTokens: 2 * output.length,
		completionTokens: output.length,
		chargedNanoUsd: COST * output.length,
	});
	return { batch, output };
}

for (let seed = 1; seed <= SEEDS; seed += 1) {
	test(`a batch whose runners die answers and charges each line once (seed ${seed})`, async () => {
		const chance = random(seed);
		const world = createCrashWorld(db, owner, chance);
		const { names, id } = await world.createLines(5 + Math.floor(chance() * 40));
		for (let deaths = 0; deaths < 6; deaths += 1) {
			const life = world.live({ diesAt: 1 + Math.floor(chance() * 25), after: chance() < 0.5 });
			await life.run(id);
			if (!life.isOver()) break;
		}
		await world.live().run(id);
		await assertOnce(world, id, names);
	}, 30_000);
}

test("an outage of Postgres during a batch charges no line twice", async () => {
	const world = createCrashWorld(db, owner, random(99));
	const { names, id } = await world.createLines(40);
	const life = world.live({ away: [18, 60] });
	// A run that ended early is started again, as the queue would.
	while (!hasBatchEnded((await world.find(id)).state)) await life.run(id).catch(() => Bun.sleep(5));
	const { batch } = await assertOnce(world, id, names);
	expect(batch.chargedNanoUsd as number).toBe(world.charged());
});

test("a batch keeps the answer of a line that is recorded as answered and released", async () => {
	const world = createCrashWorld(db, owner, random(5));
	const id = await world.create([chatLine("a")]);
	const { run } = await world.begin(id, 1);
	const file = (filename: string) => world.files.writer(owner, { purpose: "batch_output", filename });
	const files = { output: await file("output"), error: await file("error") };
	const deps = { books: world.books, clock: systemClock, log: silentLog, refused: new Set<string>() };
	const outcomes = createOutcomeWriter(deps, { batchId: id, run, ...files });
	const [first, second] = [crypto.randomUUID(), crypto.randomUUID()];
	const flush = () => outcomes.flush(AbortSignal.timeout(5_000));

	// The reply to the claim was lost, so the claim may belong to either request.
	await world.books.claim(id, run, [{ line: 1, id: first }]);
	outcomes.release(1, crypto.randomUUID());
	outcomes.release(1, first);
	await flush();
	expect(await world.books.lines(id, 0)).toMatchObject([{ line: 1, state: "free" }]);

	await world.books.claim(id, run, [{ line: 1, id: second }]);
	outcomes.release(1, first);
	outcomes.add({ line: 1, id: second, file: "output", text: "{}\n", usage: undefined });
	outcomes.release(1, second);
	await flush();
	expect(await world.books.lines(id, 0)).toMatchObject([{ line: 1, state: "output" }]);
	expect(outcomes.counts()).toMatchObject({ completed: 1, failed: 0 });
});

test("a batch run that a newer run replaced sends no more lines and changes nothing", async () => {
	const world = createCrashWorld(db, owner, random(7));
	const { names, id } = await world.createLines(60);
	const first = world.live().run(id);
	while ((world.executed.get("line-5") ?? 0) === 0) await Bun.sleep(1);
	await Promise.all([first, world.live().run(id)]);
	await assertOnce(world, id, names);
});

test("a batch run that a newer run replaced leaves the output files to the newer run", async () => {
	const world = createCrashWorld(db, owner, random(8));
	const id = await world.create([chatLine("a")]);
	const { outcomes } = world.books;
	let newer: Awaited<ReturnType<typeof world.files.resume>>;
	world.books.outcomes = async (...given) => {
		const isTaken = await outcomes(...given);
		await world.books.take(id);
		newer = await world.files.resume((await world.find(id)).outputFileId ?? "");
		await newer?.fence();
		return isTaken;
	};
	await world.live().run(id);
	newer?.write("kept");
	expect(await newer?.seal()).toBe(3);
	expect((await world.find(id)).state).toBe("in_progress");
});

test("a change by an earlier batch run ends the current run, but not the batch", async () => {
	const world = createCrashWorld(db, owner, random(9));
	const { names, id } = await world.createLines(20);
	const { outcomes } = world.books;
	world.books.outcomes = async (...given) => {
		world.books.outcomes = outcomes;
		await (await world.files.resume((await world.find(id)).outputFileId ?? ""))?.fence();
		return outcomes(...given);
	};
	await expect(world.live().run(id)).rejects.toThrow("another run goes on");
	await world.live().run(id);
	await assertOnce(world, id, names);
});

test("a batch fails if its input file is deleted", async () => {
	const world = createCrashWorld(db, owner, random(3));
	const id = await world.create([chatLine("a")]);
	await world.files.remove(owner.accountId, (await world.find(id)).inputFileId);
	await world.live().run(id);
	expect(await world.find(id)).toMatchObject({
		state: "failed",
		errors: [{ code: "input_file_not_found", line: null }],
	});
});

test("a batch whose input file lost bytes fails without further charges", async () => {
	const world = createCrashWorld(db, owner, random(13));
	const lose = async (id: string) =>
		rmSync(join(world.folder, (await world.find(id)).inputFileId), { recursive: true });
	const unread = await world.create([chatLine("a")]);
	await lose(unread);
	await world.live().run(unread);
	expect(await world.find(unread)).toMatchObject({ state: "failed", errors: [{ code: "input_file_lost" }], total: 0 });

	const { id: begun } = await world.createLines(40);
	const stopping = new AbortController();
	const run = world.live().run(begun, stopping.signal);
	while (world.executed.size < 5) await Bun.sleep(1);
	stopping.abort();
	await expect(run).rejects.toThrow(/the instance stops|was aborted/);
	await lose(begun);
	await world.live().run(begun);
	const batch = await world.find(begun);
	const output = await world.lines(batch.outputFileId);
	expect(batch).toMatchObject({ state: "failed", errors: [{ code: "input_file_lost" }], completed: output.length });
	expect(output.length).toBeGreaterThanOrEqual(5);
	expect(batch.chargedNanoUsd as number).toBe(world.charged());
	expect(world.executed.size).toBe(output.length);
});

test("batches and files expire by Postgres's clock, not by the gateway's clock", async () => {
	const world = createCrashWorld(db, owner, random(23));
	const { files, books } = world;
	const models = new Map([["test-model", { batch: {} }]]) as unknown as CatalogSnapshot["models"];
	const batches = createBatches({ books, files, snapshot: () => ({ models }) as CatalogSnapshot, wake: () => {} });
	const dayMs = 24 * 3600_000;
	for (const aheadMs of [-2 * dayMs, 2 * dayMs]) {
		setSystemTime(new Date(Date.now() + aheadMs));
		const { id } = await files.create(owner, { purpose: "batch", filename: "in" }, new Blob(["{}\n"]).stream());
		const request = {
			inputFileId: id,
			endpoint: "/v1/chat/completions",
			metadata: null,
			idempotencyKey: null,
		} as const;
		const batch = await batches.create(owner, { ...request, outputExpiresS: 3600 });
		const writer = await files.writer(owner, { purpose: "batch_output", filename: "out" });
		writer.write("{}\n");
		const made = await writer.finish();
		const taken = await books.take(batch.id);
		await books.end(batch.id, taken?.batch.run ?? 0, { ending: "completed", output: made.id, error: null });
		setSystemTime();
		const [found, output] = await Promise.all([id, made.id].map((file) => files.find(owner.accountId, file)));
		const lastsMs = [batch, found, output].map((made) => (made?.expiresAtMs ?? 0) - Date.now());
		for (const [index, ms] of [dayMs, 30 * dayMs, 3_600_000].entries()) {
			expect(lastsMs[index]).toBeWithin(ms - 60_000, ms + 60_000);
		}
	}
});

test("a batch waits for an unreachable file store until an hour after its time limit", async () => {
	const world = createCrashWorld(db, owner, random(17));
	const away = `${world.folder}-away`;
	const waiting = await world.create([chatLine("a")]);
	const over = await world.create([chatLine("b")], { windowMs: -1 });
	for (const id of [waiting, over]) await world.begin(id, 1, true);
	renameSync(world.folder, away);
	for (const id of [waiting, over]) await expect(world.live().run(id)).rejects.toThrow("cannot be read on");
	await db.sql`update batch set expires_at = clock_timestamp() - interval '61 minutes' where id = ${over}`;
	await world.live().run(over);
	expect(await world.find(over)).toMatchObject({ state: "failed", errors: [{ code: "input_file_lost" }] });
	renameSync(away, world.folder);
	await world.live().run(waiting);
	await assertOnce(world, waiting, ["a"]);
});

test("a batch that expires with an unreadable input file gets no error file", async () => {
	const world = createCrashWorld(db, owner, random(19));
	const unread = await world.create([chatLine("b")], { windowMs: -2 * 3_600_000 });
	renameSync(world.folder, `${world.folder}-away`);
	await world.live().run(unread);
	expect(await world.find(unread)).toMatchObject({ state: "expired", outputFileId: null, errorFileId: null });
	renameSync(`${world.folder}-away`, world.folder);
	expect(world.executed.size).toBe(0);
});

test("a runner that dies while it prepares a batch leaves no orphaned output file", async () => {
	const world = createCrashWorld(db, owner, random(23));
	for (let diesAt = 2; diesAt <= 9; diesAt += 1) {
		const id = await world.create([chatLine(`line-${diesAt}`)]);
		await world.live({ diesAt, after: true }).run(id);
		await world.live().run(id);
		const { outputFileId, errorFileId } = await world.find(id);
		const rows = await db.sql`select id from stored_file where filename like ${`${id}%`} and state <> 'deleted'`;
		expect(rows.map((row) => row.id).sort()).toEqual([outputFileId, errorFileId].filter(Boolean).sort() as string[]);
	}
});

test("a runner that stops releases its batch's lines, and no line is sent twice", async () => {
	const world = createCrashWorld(db, owner, random(11));
	const { names, id } = await world.createLines(60);
	for (const enough of [5, 20, 35]) {
		const stopping = new AbortController();
		const run = world.live().run(id, stopping.signal);
		while (world.executed.size < enough) await Bun.sleep(1);
		stopping.abort();
		// The first run may be stopped before it has sent a line.
		await expect(run).rejects.toThrow(/the instance stops|was aborted/);
	}
	await world.live().run(id);
	await assertOnce(world, id, names);
	expect(world.charged()).toBe(names.length * COST);
});

async function settled(request: string, { accountId, keyId } = owner, batch: string | null = null): Promise<void> {
	await db.sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, batch_id)
		values (${request}, ${accountId}, ${keyId}, 'i', 1, 'm', 'r', 'chat', false, 50, 40, 'exact', 'finished', 200, now(),
			${batch})`;
}

const lost = async () => (await db.sql`select request_id::text as id from batch_lost_request`).map(({ id }) => id);

test("the charge of a lost batch request is refunded once, whenever it is settled", async () => {
	const world = createCrashWorld(db, owner, random(29));
	const id = await world.create([chatLine("a")]);
	const { run: first } = await world.begin(id);
	const request = crypto.randomUUID();
	await world.books.claim(id, first, [{ line: 1, id: request }]);
	expect(await world.books.reopen(id, (await world.begin(id)).run, [{ line: 1, id: request }])).toBeTrue();
	expect(await world.books.reopen(id, first, [{ line: 1, id: request }])).toBeFalse();
	const credit = async () =>
		(await db.sql`select limit_nano_usd::integer as nano from budget where id = ${owner.accountId}`)[0]?.nano;
	const before = await credit();
	const collect = () => refundLostRequests(db.statements, silentLog);
	expect(await collect()).toBe(ZERO_USD);
	await settled(request);
	const sums = await Promise.all([collect(), collect()]);
	expect(sums.map(Number).sort()).toEqual([0, 40]);
	expect(await credit()).toBe(before + 40);
});

test("accounts get their refunds although one account's credit cannot grow further", async () => {
	const { id: full } = await createAccount(db.statements, { email: "full@example.com", vouched: true });
	await db.sql`update budget set limit_nano_usd = ${Number.MAX_SAFE_INTEGER} where id = ${full}`;
	const requests = [crypto.randomUUID(), crypto.randomUUID()] as const;
	for (const [at, accountId] of [full, owner.accountId].entries()) {
		const request = requests[at] ?? "";
		await settled(request, { ...owner, accountId });
		await db.sql`
			insert into batch_lost_request (request_id, batch_id, account_id, lost_at)
			values (${request}, 'batch_1', ${accountId}, now() - ${2 - at}::integer * interval '1 hour')`;
	}
	expect(Number(await refundLostRequests(db.statements, silentLog))).toBe(40);
	expect(await lost()).toContain(requests[0]);
	expect(await lost()).not.toContain(requests[1]);
	await db.sql`update budget set limit_nano_usd = 0 where id = ${full}`;
	expect(Number(await refundLostRequests(db.statements, silentLog))).toBe(40);
	expect(await lost()).not.toContain(requests[0]);
});

test("a batch whose output file was deleted still records requests without an answer", async () => {
	const world = createCrashWorld(db, owner, random(31));
	const id = await world.create([chatLine("a"), chatLine("b")]);
	const { run, files } = await world.begin(id, 2, true);
	const request = crypto.randomUUID();
	await world.books.claim(id, run, [{ line: 1, id: request }]);
	await world.files.remove(owner.accountId, files.output);
	await world.live().run(id);
	expect(await world.find(id)).toMatchObject({ state: "failed", errors: [{ code: "output_file_lost" }] });
	expect(await lost()).toContain(request);
	await settled(request);
	expect(Number(await refundLostRequests(db.statements, silentLog))).toBe(40);
});

test("a batch continues after a failover that lost parts of its output file", async () => {
	const world = createCrashWorld(db, owner, random(37));
	const { names, id } = await world.createLines(300);
	const run = world.live().run(id);
	const parts = async () =>
		(await db.sql`select parts from stored_file where id = ${(await world.find(id)).outputFileId}`)[0]?.parts ?? 0;
	while ((await parts()) < 2) await Bun.sleep(1);
	await db.sql.begin(async (sql) => {
		const { outputFileId } = await world.find(id);
		await sql`select 1 from stored_file where id = ${outputFileId} for update`;
		const [lost] =
			await sql`delete from stored_file_part where file_id = ${outputFileId} and number = 1 returning start`;
		await sql`delete from stored_file_part where file_id = ${outputFileId} and number > 1`;
		await sql`update stored_file set parts = 1, bytes = ${lost?.start} where id = ${outputFileId}`;
	});
	await expect(run).rejects.toThrow("other parts than this run wrote");
	await world.live().run(id);
	await assertOnce(world, id, names);
});

test("requests of an ended batch are recorded once though a failover lost their claims", async () => {
	const world = createCrashWorld(db, owner, random(41));
	const id = await world.create(["a", "b", "c"].map((name) => chatLine(name)));
	const { run } = await world.begin(id, 3);
	const [kept, gone, credited, answered] = Array.from({ length: 4 }, () => crypto.randomUUID()) as [
		string,
		string,
		string,
		string,
	];
	const first = { line: 2, id: crypto.randomUUID() };
	await world.books.claim(id, run, [{ line: 1, id: kept }, first]);
	// Postgres has the claim of the line's first request, but lost the claim of the request that was answered.
	const tokens = { promptTokens: 1, cachedTokens: 0, completionTokens: 1, reasoningTokens: 0, charged: nanoUsd(40) };
	await world.books.outcomes(id, run, [{ ...first, id: answered, state: "output", part: 0, ...tokens }]);
	const all = [kept, gone, credited, answered];
	for (const request of all) await settled(request, owner, id);
	await db.sql`select ledger_book('led_41', ${owner.accountId}, 'adjustment', 40, ${`batch-lost:${credited}`}, 'batch', '', false)`;
	const end = () => world.books.end(id, run, { ending: "completed", output: null, error: null });
	expect(await end()).toBeTrue();
	expect(await world.books.dropLines()).toBeFalse();
	expect(await end()).toBeTrue();
	expect((await lost()).filter((request) => all.includes(request))).toEqual([gone]);
});
