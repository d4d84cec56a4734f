import type postgres from "postgres";
import type { ControlEntry } from "../../src/cluster/control-log.ts";
import { instanceKey, leaseKey, type ModelBudget, type ModelState, type ModelUsage } from "./model-store.ts";
import { FOLLOWED_TABLES } from "./sql-schema.ts";
import { EPOCH_MS } from "./terms.ts";
import type { World } from "./world.ts";

export type SqlMirror = ReturnType<typeof createSqlMirror>;

interface Change {
	readonly id: number;
	readonly what: string;
	readonly gone: boolean;
	readonly row: Readonly<Record<string, unknown>>;
}

/** Copies the tables' contents to the world's model, so that all invariants can be checked there. */
export function createSqlMirror(world: Omit<World, "database">, sql: postgres.Sql) {
	const { model, ceilings } = world;

	/** Removals from append-only tables are ignored. A request's usage is replaced, never removed. */
	function take({ what, gone, row }: Change): void {
		const text = (name: string) => row[name] as string;
		const number = (name: string) => Number(row[name]);
		const orNull = (name: string) => (row[name] === null ? null : Number(row[name]));
		switch (what) {
			case "budget": {
				const id = text("id");
				const known = model.budgets.get(id);
				const limit = orNull("limit_nano_usd");
				const drawn = number("drawn_nano_usd");
				const kind = text("kind") as ModelBudget["kind"];
				if (known && kind !== "account" && known.limit !== limit)
					ceilings.set(id, Math.max(known.drawn, limit ?? Number.POSITIVE_INFINITY));
				const writtenOff = number("written_off_nano_usd");
				model.budgets.set(id, { id, kind, account: text("account_id"), limit, drawn, writtenOff });
				return;
			}
			case "lease": {
				const [budget, instance, epoch] = [text("budget_id"), text("instance_id"), number("epoch")];
				model.leases.set(leaseKey(budget, instance, epoch), {
					budget,
					instance,
					epoch,
					granted: number("granted_nano_usd"),
					returned: number("returned_nano_usd"),
					settled: number("settled_nano_usd"),
					state: text("state") as "open" | "closed",
					recalled: number("recalled"),
				});
				return;
			}
			case "usage_event":
				if (!gone) model.usage.set(text("request_id"), usageOf(row));
				return;
			case "reservation": {
				const id = text("request_id");
				if (gone) return void model.reservations.delete(id);
				const [account, key, instance] = [text("account_id"), text("key_id"), text("instance_id")];
				const [epoch, reserved] = [number("epoch"), number("reserved_nano_usd")];
				model.reservations.set(id, { account, key, instance, epoch, reserved });
				return;
			}
			case "ledger_entry": {
				const [account, kind, ref] = [text("account_id"), text("kind"), text("source_ref")];
				model.entries.push({ account, kind, amount: number("amount_nano_usd"), ref });
				return;
			}
			case "instance_beat":
				if (!gone) takeBeat(row);
				return;
			case "control_log":
				model.log.push({
					seq: number("seq"),
					atMicros: 0,
					kind: text("kind") as ControlEntry["kind"],
					subject: text("subject"),
					payload: row.payload as Record<string, unknown>,
				});
				return;
			case "recall":
				if (gone) return;
				model.recalls.push({
					budget: text("budget_id"),
					ticket: number("ticket"),
					instance: text("instance_id"),
					epoch: number("epoch"),
					atMs: Date.parse(text("at")) - EPOCH_MS,
				});
				return;
		}
	}

	function takeBeat(row: Change["row"]): void {
		const [id, epoch, beat] = [String(row.id), Number(row.epoch), Number(row.beat)];
		const known = model.instances.get(instanceKey(id, epoch));
		if (known && known.beat >= beat) return;
		model.instances.set(instanceKey(id, epoch), {
			id,
			epoch,
			beat,
			state: row.state as ModelState,
			ttlMs: Number(row.ttl_ms),
			leaseUntilMs: Date.parse(String(row.lease_until)) - EPOCH_MS,
			appliedSeq: Number(row.applied_seq),
		});
	}

	/** All rows up to this id are known. Open transactions may still add rows above it, in any order. */
	let knownId = 0;
	const knownAbove = new Set<number>();

	return {
		/** Forgets all rows and reads the tables of another database server. */
		async readAll() {
			const { budgets, leases, usage, reservations, instances, entries, log, recalls } = model;
			for (const rows of [budgets, leases, usage, reservations, instances]) rows.clear();
			for (const rows of [entries, log, recalls]) rows.splice(0);
			for (const what of FOLLOWED_TABLES) {
				const order = what === "control_log" ? "seq" : what === "recall" ? "ticket" : "1";
				const rows = await sql.unsafe<{ row: Change["row"] }[]>(
					`select to_jsonb(t) as row from ${what} t order by ${order}`,
				);
				for (const { row } of rows) take({ id: 0, what, gone: false, row });
			}
			const [newest] = await sql<{ id: number }[]>`select coalesce(max(id), 0)::integer as id from change`;
			knownId = newest?.id ?? 0;
			knownAbove.clear();
			world.storeChanged = true;
		},
		/**
		 * Reads rows committed since the last call. Returns their announcements in order. `isQuiet`: no transaction is
		 * open.
		 */
		async read(isQuiet: boolean) {
			const rows = await sql<
				Change[]
			>`select id::integer, what, gone, row from change where id > ${knownId} order by id`;
			const changes = rows.filter(({ id }) => !knownAbove.has(id));
			for (const { id } of changes) knownAbove.add(id);
			if (isQuiet && changes.length > 0) {
				knownId = Math.max(...knownAbove);
				knownAbove.clear();
			}
			for (const change of changes) if (change.what !== "notify") take(change);
			if (changes.length > 0) world.storeChanged = true;
			return changes
				.filter(({ what }) => what === "notify")
				.map(({ row }) => row as { channel: string; payload: string });
		},
	};
}

/** The fields of a request's usage that the invariants need. */
function usageOf(row: Change["row"]): ModelUsage {
	const usage = {
		id: row.request_id,
		account: row.account_id,
		key: row.key_id,
		budgets: row.budgets ?? undefined,
		instance: row.instance_id,
		epoch: Number(row.epoch),
		card: row.rate_card_id,
		reserved: Number(row.reserved_nano_usd),
		charged: Number(row.charged_nano_usd),
		off: Number(row.written_off_nano_usd),
		basis: row.basis,
	};
	return usage as unknown as ModelUsage;
}
