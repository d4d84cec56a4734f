import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { hasBatchEnded } from "../../src/batch/batch-record.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { COST, createCrashWorld, keyOwner } from "./crash-world.ts";

/** A batch ends correctly after any action at any moment, although its runners die. */

const db = await withDatabase();
const owner = await keyOwner(db);
/** The short run repeats each action three times. In every second run one line is sent twice. */
const SEEDS = LONG ? 30 : 12;
const RUNS_MAX = 20;

const acts = ["cancel", "expire", "delete its input", "lose its input's bytes"] as const;

for (let seed = 1; seed <= SEEDS; seed += 1) {
	const act = acts[seed % acts.length] as (typeof acts)[number];
	test(`each batch line ends once if ${act} happens while runners die (seed ${seed})`, async () => {
		const chance = createRandom(1_000 + seed).fraction;
		const world = createCrashWorld(db, owner, chance);
		const { names, id } = await world.createLines(5 + Math.floor(chance() * 30));
		const { inputFileId } = await world.find(id);
		const does = {
			cancel: () => world.books.cancel(owner.accountId, id),
			expire: () => db.sql`update batch set expires_at = clock_timestamp() - interval '1 minute' where id = ${id}`,
			"delete its input": () => world.files.remove(owner.accountId, inputFileId),
			"lose its input's bytes": async () => rmSync(join(world.folder, inputFileId), { recursive: true, force: true }),
		}[act];
		const actsAtRun = Math.floor(chance() * 4);
		let runs = 0;
		for (; runs < RUNS_MAX && !hasBatchEnded((await world.find(id)).state); runs += 1) {
			const dies = runs < 4 ? { diesAt: 1 + Math.floor(chance() * 25), after: chance() < 0.5 } : {};
			const running = world
				.live(dies)
				.run(id)
				.catch(() => {});
			if (runs === actsAtRun) {
				const enough = world.executed.size + Math.floor(chance() * 6);
				const stops = running.then(() => true);
				while (world.executed.size < enough && !(await Promise.race([stops, Bun.sleep(1).then(() => false)])));
				await does();
			}
			await running;
		}
		// A runner that died just before the batch's end leaves files on the disk, which the next run removes.
		await world.live().run(id);
		const batch = await world.find(id);
		expect([hasBatchEnded(batch.state), runs < RUNS_MAX]).toEqual([true, true]);
		const output = await world.lines(batch.outputFileId);
		const error = await world.lines(batch.errorFileId);
		const named = [...output, ...error].map(({ custom_id }) => custom_id as string);
		expect(new Set(named).size).toBe(named.length);
		// Without the input file, the lines that were not sent cannot be named.
		if (batch.state !== "failed" && batch.model !== null) expect([...named].sort()).toEqual([...names].sort());
		expect(await world.paid()).toEqual(output.map(({ response }) => response.request_id).sort());
		expect(batch).toMatchObject({ completed: output.length, failed: error.length, paused: null });
		expect(batch.chargedNanoUsd as number).toBe(COST * output.length);
		const files = await db.sql`select id from stored_file where filename like ${`${id}%`}`;
		expect(files.map((row) => row.id).sort()).toEqual(
			[batch.outputFileId, batch.errorFileId].filter((file) => file !== null).sort() as string[],
		);
	}, 30_000);
}
