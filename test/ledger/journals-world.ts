import { afterEach, beforeEach, expect } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { type InstanceLease, startInstanceLease } from "../../src/ledger/instance-lease.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type LeaseChild, startLeaseChild } from "../support/lease-child.ts";
import { waitFor } from "../support/wait.ts";
import { makeAccount } from "./fixture.ts";

type Line = Record<string, unknown> & { readonly level: string; readonly message: string };

/** A clock with which instances search for journals every 200 ms instead of every ten seconds. */
const clock = {
	...systemClock,
	after: (ms: number, then: () => void) => systemClock.after(ms === 10_000 ? 200 : ms, then),
};

/** Gives each test a database and a folder, child processes that leave journals, and instances here that find them. */
export function withJournals() {
	const root = temporaryFolder();
	const started: InstanceLease[] = [];
	const world = {
		db: undefined as unknown as TestDatabase,
		original: "",
		copy: "",
		child: undefined as unknown as LeaseChild,
		lines: [] as Line[],

		newFolder: (name: string): string => mkdtempSync(join(root, `${name}-`)),

		/** Starts a child process whose instance "one" has a settled and a running request; `others` have no requests. */
		async serveThere(ttlMs: number, ...others: readonly string[]): Promise<void> {
			const { db, original: dataDir } = world;
			world.child = await startLeaseChild({ db, dataDir, instanceId: ["one", ...others].join(), ttlMs });
			await world.child.acts("open done 100", "settle done 60", "open streaming 1000", "progress streaming 200 320");
		},

		copyTo(folder: string): void {
			expect(Bun.spawnSync(["cp", "-a", `${world.original}/.`, folder]).success).toBe(true);
		},

		async startOn(dataDir: string, instanceId: string, leaseTtlMs = 30_000): Promise<InstanceLease> {
			const log = createLog({ level: "info", write: (line) => void world.lines.push(JSON.parse(line)) });
			const one = await startInstanceLease(
				{ db: world.db, clock, log, apply: () => {}, reset: () => {}, onDiskFailed: () => {} },
				{ instanceId, dataDir, mode: "process", leaseTtlMs, flushIntervalMs: 10 },
			);
			started.push(one);
			return one;
		},

		said: (message: string): readonly Line[] => world.lines.filter((line) => line.message === message),

		handedIn: (count = 1): Promise<void> =>
			waitFor(() => world.said("a journal was replayed").length === count, "the journals to be handed in"),

		/** Stops the child process with SIGTERM. It was not fenced off, so it returns all its credit. */
		async endThere(): Promise<void> {
			await world.child.acts("settle streaming 700");
			await world.child.ask("stop", "stopped true");
			expect(await world.charges()).toEqual([
				[60, "exact"],
				[700, "exact"],
			]);
			expect((await reconcile(world.db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
		},

		charges: async () =>
			(await world.db.sql`select charged_nano_usd, basis from usage_event order by charged_nano_usd`).map((row) => [
				Number(row.charged_nano_usd),
				row.basis,
			]),

		/** Rewrites the lock file as if the machine had restarted after the journal was created. */
		writeLockOfAnotherStart(id: string): void {
			const lock = join(world.original, "journal", id, "1", "lock");
			const [, ...rest] = readFileSync(lock, "utf8").split(" ");
			writeFileSync(lock, ["another-start", ...rest].join(" "));
		},
	};

	beforeEach(async () => {
		world.db = await createTestDatabase();
		world.original = world.newFolder("original");
		world.copy = world.newFolder("copy");
		world.lines = [];
		await makeAccount(world.db, "acc", 1_000_000, { key: 500_000 });
	});
	afterEach(async () => {
		await world.child?.end();
		await Promise.all(started.splice(0).map((one) => one.stop(1_000)));
		await world.db.drop();
	});
	return world;
}
