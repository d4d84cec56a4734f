import { newUuid } from "../../src/base/id.ts";
import type { FenceStore } from "../../src/cluster/fence.ts";
import { createPgHeartbeatStore, type HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import type { WitnessStore } from "../../src/cluster/witness.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { createPgLedgerStore, sqlState } from "../../src/ledger/pg-store.ts";
import {
	type GrantReply,
	type GrantRequest,
	InstanceNotLive,
	type LedgerStore,
	type ReturnRequest,
} from "../../src/ledger/store.ts";
import { appendControl, entryAt } from "../cluster/fixture.ts";
import { createModelStore, instanceKey } from "../sim/model-store.ts";
import type { TestDatabase } from "../support/database.ts";

const HOUR_MS = 3_600_000;

/** Operations of both stores, the simulation's model and Postgres, so that one suite tests and compares them. */
export interface ContractStore {
	budget(id: string, kind: "account" | "key", account: string, limit: number | null): Promise<void>;
	ledger(id: string, epoch: number): LedgerStore;
	heartbeats: HeartbeatStore;
	fence: Pick<FenceStore & WitnessStore, "fenceOff" | "silent">;
	attest(id: string, epoch: number, limit: number): Promise<string>;
	lagging(seq: number): Promise<string[]>;
	beatOf(id: string, epoch: number): Promise<number>;
	/** Runs `work` while another transaction locks the row of the budget, or the rows of all its leases. */
	holding<T>(kind: "budget" | "lease", budget: string, work: () => Promise<T>): Promise<T>;
	append(subject: string): Promise<number>;
	book(account: string, kind: string, amount: number, ref: string, forced: boolean): Promise<number | null | "refused">;
	/**
	 * Moves the times of all recalls into the future; otherwise they would expire at different times in the two stores.
	 */
	keepRecalls(): Promise<void>;
	/** The contents of the tables without times, in a fixed order. */
	dump(): Promise<unknown>;
}

export function postgresContractStore(db: TestDatabase): ContractStore {
	const { statements, sql } = db;
	return {
		async budget(id, kind, account, limit) {
			await sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${id}, ${kind}, ${account}, ${limit})`;
		},
		// Uses a client without the short statement timeout of `db.ledger`, which a busy machine exceeds.
		ledger: (id, epoch) => createPgLedgerStore({ statements: db.statements }, id, epoch),
		heartbeats: withoutServer(createPgHeartbeatStore(db.liveness)),
		fence: createPgFenceStore(db.liveness),
		async attest(id, epoch, limit) {
			const [row] = await sql`select closed, done from lease_close(${id}, ${epoch}, true, ${limit})`;
			return `${row?.closed} ${row?.done}`;
		},
		lagging: async (seq) => laggingIds(await createPgFenceStore(db.liveness).lagging(await entryAt(sql, seq))),
		async beatOf(id, epoch) {
			const [row] = await sql`select beat from instance_now where id = ${id} and epoch = ${epoch}`;
			return Number(row?.beat ?? 0);
		},
		holding: (kind, budget, work) =>
			sql.begin(async (transaction) => {
				if (kind === "budget") await transaction`select 1 from budget where id = ${budget} for update`;
				else await transaction`select 1 from lease where budget_id = ${budget} for update`;
				return await work();
			}) as Promise<never>,
		append: (subject) => appendControl(statements, "account", subject, { note: 1 }),
		async book(account, kind, amount, ref, forced) {
			try {
				const [row] = await sql`
					select ledger_book(${newUuid()}, ${account}, ${kind}, ${amount}, ${ref}, 'test', '', ${forced}) as seq`;
				return row?.seq === null ? null : Number(row?.seq);
			} catch (error) {
				if (sqlState(error) === "TG003") return "refused";
				throw error;
			}
		},
		async keepRecalls() {
			await sql`update recall set at = at + interval '1 day' where at < now() + interval '1 hour'`;
		},
		dump: () => dumpPostgres(db),
	};
}

async function dumpPostgres({ sql }: TestDatabase): Promise<unknown> {
	const rows = async (query: Promise<readonly Record<string, unknown>[]>) =>
		(await query).map((row) => Object.values(row).map(String).join(" "));
	return {
		budgets: await rows(sql`select id, limit_nano_usd, drawn_nano_usd, written_off_nano_usd from budget order by id`),
		leases: await rows(sql`
			select budget_id, instance_id, epoch, granted_nano_usd, returned_nano_usd, settled_nano_usd, state, recalled from lease order by 1, 2, 3`),
		operations: await rows(sql`
			select budget_id, instance_id, epoch, kind, amount_nano_usd from lease_op order by 1, 2, 3, 4, 5`),
		usage: await rows(sql`
			select request_id, account_id, key_id, instance_id, epoch, reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending
			from usage_event order by 1`),
		reservations: await rows(sql`
			select request_id, account_id, key_id, instance_id, epoch, reserved_nano_usd from reservation order by 1`),
		entries: await rows(
			sql`select account_id, kind, amount_nano_usd, source_ref from ledger_entry order by source_ref`,
		),
		instances: await rows(sql`select id, epoch, state, applied_seq, beat, ttl_ms from instance_now order by 1, 2`),
		log: await rows(sql`select seq, kind, subject from control_log order by seq`),
	};
}

export function modelContractStore(): ContractStore {
	const model = createModelStore(() => Date.now());
	const now = async <T>(work: () => T): Promise<T> => work();
	return {
		budget: (id, kind, account, limit) =>
			now(() => void model.budgets.set(id, { id, kind, account, limit, drawn: 0, writtenOff: 0 })),
		ledger: (id, epoch) => ({
			grant: (requests: readonly GrantRequest[]) => now(() => model.grant(id, epoch, requests)),
			giveBack: (requests: readonly ReturnRequest[]) => now(() => model.giveBack(id, epoch, requests)),
			flush: (settled: readonly SettledEvent[], open: string) => now(() => model.flush(id, epoch, settled, open)),
			settleLate: (event: string) => now(() => model.settleLate(id, epoch, event)),
			close: (keep) => now(() => model.close(id, epoch, false, Number.POSITIVE_INFINITY, keep)),
			recall: (budgets: readonly string[]) => now(() => model.recall(id, epoch, budgets)),
			recalls: () => now(() => model.recalled(id, epoch)),
		}),
		heartbeats: withoutServer({
			join: (id, ttlMs, after) => now(() => model.join(id, ttlMs, after)),
			position: () => now(() => model.position()),
			goLive: (id, epoch, applied, ttlMs) => now(() => model.goLive(id, epoch, applied, ttlMs)),
			heartbeat: (id, epoch, applied, ttlMs) => now(() => model.heartbeat(id, epoch, applied, ttlMs)),
			readAfter: (seq) => now(() => model.log.filter((entry) => entry.seq > seq)),
			leave: (id, epoch) => now(() => model.leave(id, epoch)),
		}),
		fence: {
			fenceOff: (id, epoch, beat) => now(() => model.fenceOff(id, epoch, beat)),
			silent: (id, epoch, beat) => now(() => model.silent(id, epoch, beat)),
		},
		attest: (id, epoch, limit) =>
			now(() => {
				const { closed, done } = model.close(id, epoch, true, limit);
				return `${closed} ${done}`;
			}),
		lagging: (seq) => now(() => laggingIds(model.lagging(seq))),
		beatOf: (id, epoch) => now(() => model.instances.get(instanceKey(id, epoch))?.beat ?? 0),
		async holding(kind, budget, work) {
			const names =
				kind === "budget"
					? [`budget ${budget}`]
					: [...model.leases].filter(([, lease]) => lease.budget === budget).map(([key]) => `lease ${key}`);
			for (const name of names) model.held.add(name);
			try {
				return await work();
			} finally {
				for (const name of names) model.held.delete(name);
			}
		},
		append: (subject) => now(() => model.append("account", subject, { note: 1 })),
		book: (...args) => now(() => model.book(...args)),
		keepRecalls: () =>
			now(() => {
				const late = Date.now() + HOUR_MS;
				for (const [at, recall] of model.recalls.entries())
					if (recall.atMs < late) model.recalls[at] = { ...recall, atMs: recall.atMs + 24 * HOUR_MS };
			}),
		async dump() {
			const lines = (rows: Iterable<object>, fields: string) =>
				[...rows]
					.map((row) => fields.split(" ").map((field) => String((row as Record<string, unknown>)[field])))
					.map((values) => values.join(" "))
					.sort();
			return {
				budgets: lines(model.budgets.values(), "id limit drawn writtenOff"),
				leases: lines(model.leases.values(), "budget instance epoch granted returned settled state recalled"),
				operations: lines(model.operations.values(), "budget instance epoch kind amount"),
				usage: lines(model.usage.values(), "id account key instance epoch reserved charged off basis ending"),
				reservations: lines(
					[...model.reservations].map(([id, request]) => ({ ...request, id })),
					"id account key instance epoch reserved",
				),
				entries: lines(model.entries, "account kind amount ref"),
				instances: lines(model.instances.values(), "id epoch state appliedSeq beat ttlMs"),
				log: lines(model.log, "seq kind subject"),
			};
		},
	};
}

/** Sorts each table's rows, because the stores may return equal rows in different orders. */
export function canonicalDump(dump: unknown): unknown {
	const tables = Object.entries(dump as Record<string, string[]>);
	return Object.fromEntries(tables.map(([name, lines]) => [name, [...lines].sort()]));
}

export async function resultOf(call: () => Promise<unknown>): Promise<unknown> {
	try {
		return plain((await call()) ?? "done");
	} catch (error) {
		if (error instanceof DatabaseTimeout) throw error;
		return error instanceof InstanceNotLive ? "not live" : "refused";
	}
}

function plain(result: unknown): unknown {
	if (result instanceof Set) return [...result].sort();
	const replies = Array.isArray(result) ? (result as Partial<GrantReply>[]) : undefined;
	// Sorts replies to grants by `op`, because the stores return them in different orders.
	if (replies?.[0]?.op !== undefined) return replies.toSorted((a, b) => ((a.op ?? "") < (b.op ?? "") ? -1 : 1));
	if (typeof result !== "object" || result === null || replies) return result;
	return Object.fromEntries(Object.entries(result).map(([name, value]) => [name, plain(value)]));
}

const laggingIds = (lagging: readonly { id: string; epoch: number }[]) =>
	lagging.map(({ id, epoch }) => `${id}|${epoch}`).sort();

/** Removes the server's identity, which differs between the stores. */
function withoutServer(store: HeartbeatStore): HeartbeatStore {
	return {
		...store,
		position: async () => ({ ...(await store.position()), server: "" }),
		async heartbeat(...args) {
			const position = await store.heartbeat(...args);
			return position && { ...position, server: "" };
		},
	};
}
