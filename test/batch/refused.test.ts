/** Batches whose outcomes Postgres refuses by a trigger, although it is available. */
import { afterEach, expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { withDatabase } from "../support/database.ts";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import { chatLine } from "./batch-service.ts";
import { createCrashWorld, keyOwner } from "./crash-world.ts";

const db = await withDatabase();
const owner = await keyOwner(db);
const COST = 10;

afterEach(async () => {
	await db.sql`alter table batch_line drop constraint if exists refuses`;
});

function begin(lines: number, seed: number) {
	const world = createCrashWorld(db, owner, createRandom(seed).fraction);
	const names = Array.from({ length: lines }, (_, at) => `line-${at}`);
	const errors: { msg?: string; message?: string; line?: number }[] = [];
	const log = createLog({ level: "error", write: (text) => void errors.push(JSON.parse(text)) });
	const refused = new Set<string>();
	let attempts = 0;
	world.books.outcomes = (
		(outcomes) =>
		(...given) => {
			attempts += 1;
			return outcomes(...given);
		}
	)(world.books.outcomes);
	return { world, names, errors, refused, attempts: () => attempts, life: () => world.live({ log, refused }) };
}

const said = (errors: readonly object[], text: string) => errors.filter((line) => JSON.stringify(line).includes(text));

test("a batch pauses while Postgres refuses its outcomes, then completes", async () => {
	const { world, names, errors, refused, attempts, life } = begin(300, 2);
	const id = await world.create(names.map((name) => chatLine(name)));
	await db.sql`alter table batch_line add constraint refuses check (state in ('claimed', 'free')) not valid`;
	const run = life().run(id);
	await waitFor(() => refused.has(id), "a refused batch");
	await waitFor(async () => (await world.find(id)).paused?.code === "service_unavailable", "its pause");
	const furtherAttempts = async () => {
		const before = attempts();
		await waitFor(() => attempts() > before + 4, "further attempts");
	};
	// Lines that were claimed before the refusal are still sent.
	await furtherAttempts();
	const sent = world.given.size;
	expect(sent).toBeLessThan(names.length);
	expect(said(errors, "repeatedly; the batch is paused").length).toBe(1);
	await furtherAttempts();
	expect(world.given.size).toBe(sent);
	expect(errors.length).toBe(1);
	await db.sql`alter table batch_line drop constraint refuses`;
	await run;
	const batch = await world.find(id);
	expect(batch).toMatchObject({ state: "completed", completed: names.length, failed: 0, paused: null });
	const output = await world.lines(batch.outputFileId);
	expect(output.map(({ custom_id }) => custom_id).sort()).toEqual([...names].sort());
	for (const name of names) expect(world.executed.get(name)).toBe(1);
	expect(batch.chargedNanoUsd as number).toBe(world.charged());
	expect([refused.size, world.charged()]).toEqual([0, names.length * COST]);
});

test("a batch pauses while Postgres refuses its claims of lines, then completes", async () => {
	const { world, names, errors, refused, life } = begin(40, 4);
	await db.sql`alter table batch_line add constraint refuses check (state <> 'claimed') not valid`;
	const id = await world.create(names.map((name) => chatLine(name)));
	const run = life().run(id);
	await waitFor(async () => (await world.find(id)).paused?.code === "service_unavailable", "its pause");
	expect(world.given.size).toBe(0);
	expect(said(errors, "refuses claims").length).toBeGreaterThan(0);
	expect([...refused]).toEqual([id]);
	await db.sql`alter table batch_line drop constraint refuses`;
	await run;
	expect(await world.find(id)).toMatchObject({ state: "completed", completed: names.length, failed: 0, paused: null });
	for (const name of names) expect(world.executed.get(name)).toBe(1);
	expect(refused.size).toBe(0);
});

test("the clean-up removes line rows of finished batches only", async () => {
	const { world, life } = begin(1, 5);
	const [over, open] = [await world.create([chatLine("a")]), await world.create([chatLine("a")])];
	await life().run(over);
	for (const id of [over, open])
		await db.sql`
			insert into batch_line (batch_id, line, request_id, state)
			select ${id}, n, gen_random_uuid(), 'claimed' from generate_series(100, 12099) n`;
	let statements = 0;
	do statements += 1;
	while (await world.books.dropLines());
	const left = await db.sql`select batch_id, count(*)::integer as lines from batch_line group by 1`;
	expect([...left]).toEqual([{ batch_id: open, lines: 12_000 }]);
	expect(statements).toBe(3);
});

test("a batch run stopped while Postgres refuses outcomes leaves them to the next run", async () => {
	const { world, names, refused, life } = begin(100, 3);
	const id = await world.create(names.map((name) => chatLine(name)));
	await db.sql`alter table batch_line add constraint refuses check (state in ('claimed', 'free')) not valid`;
	const stopping = new AbortController();
	const run = life().run(id, stopping.signal);
	await waitFor(() => refused.has(id), "a refused batch");
	stopping.abort();
	await expect(run).rejects.toThrow();
	expect(refused.size).toBe(0);
	await db.sql`alter table batch_line drop constraint refuses`;
	await life().run(id);
	const batch = await world.find(id);
	expect(batch).toMatchObject({ state: "completed", completed: names.length, failed: 0 });
	const output = await world.lines(batch.outputFileId);
	expect(await world.paid()).toEqual(output.map(({ response }) => response.request_id).sort());
}, 30_000);
