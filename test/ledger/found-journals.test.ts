/** Tests of journals in renamed folders, and of journals from before a restart of the machine. */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { startLeaseChild } from "../support/lease-child.ts";
import { waitFor } from "../support/wait.ts";
import { withJournals } from "./journals-world.ts";

const world = withJournals();

/** Instance id, folder of its journal, and the folder's name after a backup was unpacked. */
const RENAMED = [
	["a", "a", "a (old) %2F %zz é"],
	["b", "b", "%62"],
	["c", "c/1", "c/1.bak"],
	["d", "d/1", "d/20261127104500000000000"],
	["e", "e", "renamed"],
	["f", "f/1", "f/01"],
] as const;

test("a renamed journal is replayed for the instance that wrote it", async () => {
	// Runs all these instances in this process. Each has a settled and a running request.
	const { db, original } = world;
	const instanceId = RENAMED.map(([id]) => id).join();
	const child = await startLeaseChild({ db, dataDir: original, instanceId, ttlMs: 2_000 });
	world.child = child;
	for (const [id] of RENAMED) {
		await child.acts(
			`open done-${id} 100`,
			`settle done-${id} 60`,
			`open streaming-${id} 1000`,
			`progress streaming-${id} 200 320`,
		);
	}
	await child.end();
	const journals = join(original, "journal");
	for (const [, from, to] of RENAMED)
		expect(Bun.spawnSync(["mv", join(journals, from), join(journals, to)]).success).toBe(true);
	await world.startOn(original, "another");
	await world.handedIn(RENAMED.length);
	const rows =
		await db.sql`select instance_id, epoch, count(*)::int as count from usage_event group by 1, 2 order by 1`;
	expect(rows.map((row) => ({ ...row }))).toEqual(RENAMED.map(([id]) => ({ instance_id: id, epoch: 1, count: 2 })));
	expect((await db.sql`select 1 from lease where state = 'open'`).length).toBe(0);
});

test("a journal without an owner is logged, and delays no other journal", async () => {
	await world.serveThere(2_000);
	await world.child.end();
	const journals = join(world.original, "journal");
	expect(Bun.spawnSync(["cp", "-a", join(journals, "one"), join(journals, "a")]).success).toBe(true);
	expect(Bun.spawnSync(["mv", join(journals, "a", "1"), join(journals, "a", "lost+found")]).success).toBe(true);
	rmSync(join(journals, "a", "lost+found", "lock"));
	await world.startOn(world.original, "another");
	await world.handedIn();
	expect(world.lines.filter(({ level }) => level === "warn")).toMatchObject([
		{ message: "a journal could not be replayed", folder: join(journals, "a", "lost+found") },
	]);
});

test("workers with separate folders each replay their own journals after a reboot", async () => {
	await world.serveThere(2_000, "two");
	await world.child.acts("open streaming-two 1000", "progress streaming-two 300 420");
	await world.child.end();
	for (const id of ["one", "two"]) world.writeLockOfAnotherStart(id);
	// Starts both instances, so that each finds the other's journal while the other is live.
	await world.startOn(world.original, "one", 1_000);
	await world.startOn(world.original, "two", 1_000);
	await waitFor(async () => (await world.charges()).length === 3, "both journals to be handed in");
	expect(await world.charges()).toEqual([
		[60, "exact"],
		[200, "recovered"],
		[300, "recovered"],
	]);
	expect(world.lines.filter(({ level }) => level === "error")).toEqual([]);
});
