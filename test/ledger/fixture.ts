import type { Clock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { createLog } from "../../src/base/log.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import type { AdmittedEvent, SettledEvent } from "../../src/ledger/event.ts";
import { createJournal } from "../../src/ledger/journal.ts";
import type { JournalDisk } from "../../src/ledger/journal-disk.ts";
import { readJournal } from "../../src/ledger/journal-reader.ts";
import { type JournalRecord, readRecords } from "../../src/ledger/journal-record.ts";
import { NO_USAGE, type Outcome } from "../../src/ledger/outcome.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import type { GrantReply, GrantRequest, LedgerStore, ReturnRequest } from "../../src/ledger/store.ts";
import { type NanoUsd, nanoUsd } from "../../src/money/nano-usd.ts";
import type { TestDatabase } from "../support/database.ts";

export function admittedEvent(account: string, key: string, id = newUuid()): Omit<AdmittedEvent, "reserved"> {
	return { id, account, key, model: "m", card: "card", endpoint: "chat", streamed: true, at: 1_700_000_000_000 };
}

export function settledEvent(
	account: string,
	key: string,
	charged: number,
	more: Partial<SettledEvent> = {},
): SettledEvent {
	return {
		...admittedEvent(account, key),
		reserved: nanoUsd(Math.max(charged, 1)),
		charged: nanoUsd(charged),
		off: nanoUsd(0),
		basis: "exact",
		ending: "finished",
		status: 200,
		...NO_USAGE,
		promptTokens: 1,
		completionTokens: 1,
		replica: "r1",
		first: 12.5,
		ms: 30,
		...more,
	};
}

export function outcome(cost: number): Outcome {
	return {
		...NO_USAGE,
		costNanoUsd: nanoUsd(cost),
		basis: "exact",
		ending: "finished",
		status: 200,
		replica: "r1",
		first: 5,
		ms: 10,
	};
}

export const usd = (amount: number): NanoUsd => nanoUsd(amount);

export async function makeAccount(
	db: TestDatabase,
	account: string,
	credit: number,
	keys: Readonly<Record<string, number | null>>,
): Promise<void> {
	await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${account}, 'account', ${account}, 0)`;
	if (credit > 0) {
		await db.sql`select ledger_book(${newUuid()}, ${account}, 'adjustment', ${credit}, ${`opening:${account}`}, 'test', '', false)`;
	}
	for (const [key, cap] of Object.entries(keys)) {
		await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${key}, 'key', ${account}, ${cap})`;
	}
}

/** An account made as customers' are, with credit of 100,000 nano-dollars. */
export async function creditedAccount({ statements, sql }: TestDatabase): Promise<string> {
	const { id } = await createAccount(statements, { email: `${newUuid()}@example.com`, vouched: true });
	await sql`select ledger_book(${newUuid()}, ${id}, 'adjustment', 100000, ${newUuid()}, 'test', '', false)`;
	return id;
}

/** What makes keys in tests that send no request with them. */
export const keyMaker = ({ statements }: TestDatabase) => ({
	...{ statements, digest: createDigest("pepper"), serviceName: "service" },
});

/** The stores of instances whose statements run with the ledger's deadline. */
export const storesOf =
	({ ledger }: TestDatabase) =>
	(id: string, epoch = 1) =>
		createPgLedgerStore({ statements: ledger }, id, epoch);

/** Forty grants of 90 by four new instances at once: `budget` and, first, the budget of `other`. */
export async function grantsOfFour(db: TestDatabase, budget: string, other: (n: number) => string) {
	const ids = [1, 2, 3, 4].map((n) => `${budget}-${n}`);
	for (const id of ids) await goLive(db, id);
	const stores = ids.map((id) => retrying(storesOf(db)(id)));
	const grants = Array.from({ length: 40 }, (_, n) => stores[n % 4]?.grant([wish(other(n), 90), wish(budget, 90)]));
	return (await Promise.all(grants)).map((replies) => replies?.map(({ amount }) => Number(amount)) ?? []);
}

/** Tables of the books with the column that dates their rows. */
export const DATED: readonly (readonly [table: string, column: string])[] = [
	["usage_event", "settled_at"],
	["lease_op", "at"],
	["ledger_entry", "created_at"],
];

/** Moves rows of the last hour to noon of the day `days` before `today`, which is an SQL expression. */
export async function backdate(
	{ sql }: TestDatabase,
	days: number,
	tables = DATED,
	today = "date_trunc('day', now(), 'UTC')",
) {
	for (const [table, column] of tables)
		await sql.unsafe(`
			update ${table} set ${column} = ${today} - interval '${days} days' + interval '12 hours'
				+ (${column} - date_trunc('hour', ${column})) where ${column} > now() - interval '1 hour'`);
}

/** Starts an epoch and makes it live without a heartbeat, for tests of single statements. */
export async function goLive(db: TestDatabase, id: string, ttlMs = 60_000): Promise<number> {
	const [row] = await db.sql`select instance_join(${id}, ${ttlMs}) as epoch`;
	await db.sql`
		select instance_go_live(${id}, ${row?.epoch}, (select coalesce(max(seq), 0) from control_log), ${ttlMs})`;
	return Number(row?.epoch);
}

export function openTestJournal(
	disk: JournalDisk,
	clock: Clock,
	options: { syncs?: boolean; segmentBytesMax?: number; keepMs?: number },
) {
	const failures: unknown[] = [];
	const lines: string[] = [];
	const log = createLog({ level: "warn", write: (line) => void lines.push(line) });
	const journal = createJournal(
		{ disk, clock, log, onSyncFailed: (error) => failures.push(error) },
		{ ...options, syncs: options.syncs ?? false },
	);
	return { journal, failures, lines };
}

/** Builds a request for a grant as `grants.ts` sends it. */
export function wish(budget: string, want: number, min = want, more: Partial<GrantRequest> = {}): GrantRequest {
	return { op: newUuid(), budget, want: usd(want), min: usd(min), again: false, ticket: null, ...more };
}

export function giving(budget: string, amount: number, more: Partial<ReturnRequest> = {}): ReturnRequest {
	return { op: newUuid(), budget, amount: usd(amount), recall: null, ...more };
}

/** Resolves to undefined if the statement times out, as on a busy machine. It may still have taken effect. */
async function unlessLate<T>(asked: Promise<T>): Promise<T | undefined> {
	try {
		return await asked;
	} catch (error) {
		if (error instanceof DatabaseTimeout) return undefined;
		throw error;
	}
}

/** Wraps a store that retries after a locked row or a missing answer, as the store's callers do. */
export function retrying(store: LedgerStore): LedgerStore {
	return {
		...store,
		async grant(requests) {
			const replies = new Map<string, GrantReply>();
			for (let left = requests; left.length > 0; ) {
				const answered = await unlessLate(store.grant(left));
				for (const reply of answered ?? []) if (!reply.busy) replies.set(reply.op, reply);
				left = left.filter(({ op }) => !replies.has(op)).map((one) => (answered ? one : { ...one, again: true }));
			}
			return requests.map(({ op }) => replies.get(op) as GrantReply);
		},
		async giveBack(requests) {
			for (let left = requests; left.length > 0; ) {
				const busy = await unlessLate(store.giveBack(left));
				if (busy) left = left.filter(({ op }) => busy.has(op));
			}
			return new Set();
		},
		async flush(settled, openJson) {
			for (;;) {
				const flushed = await unlessLate(store.flush(settled, openJson));
				if (flushed?.busy.size === 0) return flushed;
			}
		},
		async close() {
			for (let closed = 0; ; ) {
				const part = await store.close();
				closed += part.closed;
				if (part.done) return { closed, done: true };
			}
		},
	};
}

export function replayedJournal(disk: JournalDisk, nowWallMs = 0) {
	const settled: SettledEvent[] = [];
	const reader = readJournal(disk, nowWallMs);
	for (;;) {
		const next = reader.next();
		if (next.done) return { settled, ...next.value };
		settled.push(next.value);
	}
}

/** Decodes the undamaged records at the start of a file; also returns how many bytes they occupy. */
export function decodeRecords(bytes: Uint8Array) {
	const reader = readRecords(bytes);
	const records: JournalRecord[] = [];
	for (;;) {
		const next = reader.next();
		if (next.done) return { records, intactBytes: next.value };
		records.push(next.value);
	}
}
