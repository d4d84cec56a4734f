/** Tests of a copied journal folder, such as a volume snapshot, that is used while the original instance runs. */
import { expect, spyOn, test } from "bun:test";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { libc } from "../../src/base/libc.ts";
import type { Hold, Ledger } from "../../src/ledger/ledger.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { createTestDatabase } from "../support/database.ts";
import { startLeaseChild } from "../support/lease-child.ts";
import { waitFor } from "../support/wait.ts";
import { admittedEvent, makeAccount, outcome } from "./fixture.ts";
import { withJournals } from "./journals-world.ts";

const world = withJournals();

const LEFT_ALONE = "a journal is a copy of a running instance's; leaving it alone";
const WAITS = "a journal was not created here: replaying it once its instance has ended";

async function untilLeftAlone(folders: readonly string[]): Promise<void> {
	await waitFor(() => world.said(LEFT_ALONE).length === folders.length, "the journals to be left");
	for (const folder of folders) expect(existsSync(join(folder, "00000001.log"))).toBe(true);
}

/** Ways to damage a copy's lock file, which names the journal's owner. */
const ALTERED: readonly [string, (folder: string) => void][] = [
	["left-out", (folder) => rmSync(join(folder, "lock"))],
	["empty", (folder) => writeFileSync(join(folder, "lock"), "")],
	["cut-off", (folder) => writeFileSync(join(folder, "lock"), "0")],
	["whole", () => {}],
];
/** The folder of the original, a copy of it next to it, and the journal inside that copy. */
const BESIDE = [
	["one", "one.bak", "one.bak/1"],
	["one/1", "one/20261126", "one/20261126"],
] as const;

test("a copied journal is not replayed while its instance runs, whatever its name", async () => {
	await world.serveThere(30_000);
	const elsewhere = ALTERED.map(([name, alter]) => {
		const folder = world.newFolder(name);
		world.copyTo(folder);
		const journal = join(folder, "journal", "one", "1");
		alter(journal);
		return { name, folder, journal };
	});
	world.copyTo(world.copy);
	await Promise.all([
		...elsewhere.map(({ name, folder }) => world.startOn(folder, name)),
		// Starts a second instance with the same name on the copy, so that both renew their leases in turns.
		world.startOn(world.copy, "one"),
	]);
	await untilLeftAlone([...elsewhere.map(({ journal }) => journal), join(world.copy, "journal", "one", "1")]);

	world.lines = [];
	const journals = join(world.original, "journal");
	for (const [from, to] of BESIDE)
		expect(Bun.spawnSync(["cp", "-a", join(journals, from), join(journals, to)]).success).toBe(true);
	await world.startOn(world.original, "another");
	await untilLeftAlone(BESIDE.map(([, , at]) => join(journals, at)));
	await world.endThere();
}, 60_000);

test("a copied journal is not replayed while its instance stops and settles requests", async () => {
	const instanceLease = await world.startOn(world.original, "one");
	const ledger = () => instanceLease.ledger() as Ledger;
	await ledger().draw({ account: "acc", key: "key" }, nanoUsd(1_000));
	const hold = ledger().reserve({ ...admittedEvent("acc", "key"), reserved: nanoUsd(1_000) }) as Hold;
	hold.ledger.progress(hold, { delivered: nanoUsd(200), bound: nanoUsd(320), promptTokens: 1, completionTokens: 1 });
	world.copyTo(world.copy);
	const stopped = instanceLease.stop(60_000);
	const left = async () =>
		(await world.db.sql`select 1 from instance_now where id = 'one' and state = 'dead'`).length === 1;
	await waitFor(left, "it to have handed back what lay idle");
	await world.startOn(world.copy, "another");
	await untilLeftAlone([join(world.copy, "journal", "one", "1")]);
	hold.ledger.settle(hold, outcome(700));
	expect(await stopped).toBe(true);
	expect(await world.charges()).toEqual([[700, "exact"]]);
});

test("a running process's journal is not replayed even from a mount without file locks", async () => {
	await world.serveThere(30_000);
	const flock = spyOn(libc(), "flock").mockReturnValue(0);
	try {
		await world.startOn(world.original, "another");
		await waitFor(() => world.said(WAITS).length > 1, "it to be looked at again");
		await world.endThere();
		expect(world.lines.filter(({ level }) => level === "error")).toEqual([]);
	} finally {
		flock.mockRestore();
	}
}, 30_000);

test("a journal from before a restore frees no credit of the new epoch with its number", async () => {
	await world.serveThere(30_000);
	await world.child.end();
	const before = world.db;
	const restored = await createTestDatabase();
	await makeAccount(restored, "acc", 1_000, { key: null });
	// Starts a process with the same instance id but another DATA_DIR.
	const child = await startLeaseChild({ db: restored, dataDir: world.copy, instanceId: "one", ttlMs: 30_000 });
	world.child = child;
	world.db = restored;
	expect(await child.heard("live 1")).toBe("live 1");
	await child.acts("open running 900");
	await world.startOn(world.original, "another");
	await world.handedIn();
	const { sql, statements } = restored;
	expect((await sql`select 1 from instance_now where id = 'one' and epoch = 1 and state = 'live'`).length).toBe(1);
	// Credit that the first instance may still spend is not available to other instances.
	const [row] = await sql`select limit_nano_usd - drawn_nano_usd as available from budget where id = 'acc'`;
	expect(Number(row?.available)).toBeLessThanOrEqual(100);
	await child.acts("settle running 900");
	await child.ask("stop", "stopped true");
	const rows = await sql`
		select instance_id, sum(charged_nano_usd)::int as charged, sum(charged_nano_usd + written_off_nano_usd)::int as cost
		from usage_event group by 1 order by 1`;
	expect(rows.map(({ instance_id, cost }) => [String(instance_id).replace(/~.*/, "~"), cost])).toEqual([
		["one", 900],
		["one~", 260],
	]);
	expect(rows[0]?.charged).toBe(900);
	expect(rows[1]?.charged).toBeLessThanOrEqual(100);
	expect((await reconcile(statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
	await before.drop();
}, 30_000);

test("a copied journal is replayed once its instance was silent for a lease's time", async () => {
	await world.serveThere(2_000);
	await world.child.end();
	world.copyTo(world.copy);
	const beganAt = performance.now();
	await world.startOn(world.copy, "another");
	await world.handedIn();
	expect(performance.now() - beganAt).toBeGreaterThan(1_000);
	expect(await world.charges()).toEqual([
		[60, "exact"],
		[200, "recovered"],
	]);
	await waitFor(() => readdirSync(join(world.copy, "journal", "one")).length === 0, "the journal to be removed");
});
