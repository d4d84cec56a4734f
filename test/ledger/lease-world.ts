import { afterEach, beforeEach, expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { type InstanceLease, startInstanceLease } from "../../src/ledger/instance-lease.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type LeaseChild, startLeaseChild } from "../support/lease-child.ts";
import { admittedEvent, makeAccount, outcome, usd } from "./fixture.ts";

export const CREDIT = 1_000_000;

/** Gives each test a database with an account, a data folder, and instances in this process and in child processes. */
export function withLeases() {
	const root = temporaryFolder();
	const children: LeaseChild[] = [];
	let db: TestDatabase;
	let dataDir: string;
	let resets: number[] = [];

	beforeEach(async () => {
		db = await createTestDatabase();
		dataDir = mkdtempSync(join(root, "data-"));
		await makeAccount(db, "acc", CREDIT, { key: 500_000 });
	});
	afterEach(async () => {
		for (const child of children.splice(0)) await child.end();
		await db.drop();
	});

	const broken = async () => (await reconcile(db.statements)).checks.filter(({ ok }) => !ok);
	async function available(): Promise<number> {
		const [row] = await db.sql`select limit_nano_usd - drawn_nano_usd as available from budget where id = 'acc'`;
		return Number(row?.available);
	}

	async function reserveHere(instanceLease: InstanceLease, amount: number) {
		for (;;) {
			const ledger = instanceLease.ledger();
			if (!ledger) throw new Error("the gate is closed");
			const hold = ledger.reserve({ ...admittedEvent("acc", "key"), reserved: usd(amount) });
			if (hold) return hold;
			expect(await ledger.draw({ account: "acc", key: "key" }, usd(amount))).toBe(null);
		}
	}

	return {
		get db() {
			return db;
		},
		get dataDir() {
			return dataDir;
		},
		/** Control log positions at which instances of this process cleared their caches because an epoch began. */
		get resets() {
			return resets;
		},
		async startChild(instance: string, ttlMs = 30_000): Promise<LeaseChild> {
			const child = await startLeaseChild({ db, dataDir, instanceId: instance, ttlMs });
			children.push(child);
			return child;
		},
		startHere(
			instanceId: string,
			leaseTtlMs = 30_000,
			clock: Clock = systemClock,
			log: Log = silentLog,
			more: { keepMs?: number; segmentBytesMax?: number; fencedDrainMs?: number } = {},
		): Promise<InstanceLease> {
			resets = [];
			return startInstanceLease(
				{ db, clock, log, apply: () => {}, reset: (seq) => resets.push(seq), onDiskFailed: () => {} },
				{ instanceId, dataDir, mode: "process", leaseTtlMs, flushIntervalMs: 10, ...more },
			);
		},
		reserveHere,
		/** Reserves credit on the instance and settles the request with this cost. */
		async settleHere(instanceLease: InstanceLease, cost: number) {
			const hold = await reserveHere(instanceLease, 500);
			hold.ledger.settle(hold, outcome(cost));
			return hold;
		},
		/** Stops the instance; expects that it leaves nothing to a replay, and that `charged` was spent in all. */
		async expectEnd(instanceLease: InstanceLease, charged: number): Promise<void> {
			expect(await instanceLease.stop(5_000)).toBe(true);
			expect([await available(), await broken()]).toEqual([CREDIT - charged, []]);
		},
		usage: async () => (await db.sql`select 1 from usage_event`).length,
		broken,
		available,
		openLeases: async () => (await db.sql`select 1 from lease where state = 'open'`).length,
		journals: (id: string) =>
			existsSync(join(dataDir, "journal", id)) ? readdirSync(join(dataDir, "journal", id)) : [],
	};
}
