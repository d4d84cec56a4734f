/** A folder of journals that was copied, as a snapshot of a volume that is started beside its original. */
import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import type { InstanceLease } from "../../src/ledger/instance-lease.ts";
import { startInstanceLease } from "../../src/ledger/instance-lease.ts";
import { reconcile } from "../../src/ledger/reconcile.ts";
import type { TestDatabase } from "../support/database.ts";
import { createTestDatabase } from "../support/database.ts";
import type { LeaseChild } from "../support/lease-child.ts";
import { startLeaseChild } from "../support/lease-child.ts";
import { waitFor } from "../support/wait.ts";
import { makeAccount } from "./fixture.ts";

const root = mkdtempSync(join(tmpdir(), "tollgate-copied-journal-"));
let db: TestDatabase;
let original: string;
let copy: string;
let child: LeaseChild;
let started: InstanceLease | undefined;
let lines: { level: string; message: string }[] = [];

beforeEach(async () => {
	db = await createTestDatabase();
	original = mkdtempSync(join(root, "original-"));
	copy = mkdtempSync(join(root, "copy-"));
	lines = [];
	await makeAccount(db, "acc", 1_000_000, { key: 500_000 });
});
afterEach(async () => {
	await child.end();
	await started?.stop(1_000);
	started = undefined;
	await db.drop();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** One request that is settled there, one that runs. */
async function serveThere(ttlMs: number): Promise<void> {
	child = await startLeaseChild({ url: db.url, dataDir: original, instanceId: "one", ttlMs });
	await child.ask("open done 100", "opened done");
	await child.ask("settle done 60", "settled done");
	await child.ask("open streaming 1000", "opened streaming");
	await child.ask("progress streaming 200 320", "progressed streaming");
}

function copyAll(): void {
	expect(Bun.spawnSync(["cp", "-a", `${original}/.`, copy]).success).toBe(true);
}

async function startOnCopy(instanceId: string): Promise<InstanceLease> {
	const log = createLog({ level: "info", write: (line) => void lines.push(JSON.parse(line)) });
	started = await startInstanceLease(
		{ db, clock: systemClock, log, apply: () => {}, reset: () => {}, onDiskFailed: () => {} },
		{ instanceId, dataDir: copy, mode: "process", leaseTtlMs: 30_000, flushIntervalMs: 10 },
	);
	return started;
}

const says = (message: string) => lines.some((line) => line.message === message);
const charges = async () =>
	(await db.sql`select charged_nano_usd, basis from usage_event order by charged_nano_usd`).map((row) => [
		Number(row.charged_nano_usd),
		row.basis,
	]);

test.each(["one", "another"])(
	"a copy that is started as %p leaves the journal alone while its instance runs, which settles what it used",
	async (name) => {
		await serveThere(30_000);
		copyAll();
		await startOnCopy(name);
		await waitFor(
			() => says("a journal is a copy of one whose instance runs; it is left alone"),
			"the journal to be left",
		);
		expect(existsSync(join(copy, "journal", "one", "1", "00000001.log"))).toBe(true);
		await child.ask("settle streaming 700", "settled streaming");
		// It was not fenced off, and hands all back in order.
		await child.ask("stop", "stopped true");
		expect(await charges()).toEqual([
			[60, "exact"],
			[700, "exact"],
		]);
		expect((await reconcile(db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
	},
);

test("a copy hands the journal in when its instance has been silent for as long as its lease", async () => {
	await serveThere(1_000);
	child.process.kill("SIGKILL");
	await child.process.exited;
	copyAll();
	const beganAt = performance.now();
	await startOnCopy("another");
	await waitFor(() => says("a journal was handed in"), "the journal to be handed in");
	expect(performance.now() - beganAt).toBeGreaterThan(1_000);
	expect(await charges()).toEqual([
		[60, "exact"],
		[200, "recovered"],
	]);
	expect(readdirSync(join(copy, "journal", "one"))).toEqual([]);
});
