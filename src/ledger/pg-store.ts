import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import { SettledColumns } from "./event.ts";
import { type GrantReply, InstanceNotLive, LeaseExceeded, type LedgerStore } from "./store.ts";
import { USAGE_FIELD_NAMES, usageField } from "./usage-fields.ts";

interface GrantRow extends Omit<GrantReply, "amount" | "available" | "lent"> {
	amount: string;
	available: string | null;
	lent: string | null;
}

/** Leases closed per statement. Each statement locks the rows of all their budgets. */
const CLOSE_BATCH = 500;

/** Array element type for `lease_settle`. Inner arrays are texts: Postgres nests only arrays of equal length. */
const elementOf = ({ type }: ReturnType<typeof usageField>) =>
	type === "text[]" ? "text" : type === "timestamptz" ? "double precision" : type;

const ARRAYS = USAGE_FIELD_NAMES.map((name) => `::text::${elementOf(usageField(name))}[], `);
const LEASE_SETTLE = templateOf([
	"select late, fresh, busy from lease_settle(",
	", ",
	", ",
	...ARRAYS,
	"::text::json)",
]);

function templateOf(strings: string[]): TemplateStringsArray {
	return Object.assign(strings, { raw: strings });
}

/** The ledger's statements, whose functions are in `db/functions/lease.sql` and `ledger.sql`. */
export function createPgLedgerStore(deps: { statements: Statements }, instanceId: string, epoch: number): LedgerStore {
	const { statements } = deps;
	return {
		async grant(requests) {
			try {
				const rows = await statements<GrantRow>`
					select op, amount, available, unanswered, lent, contested, busy, untimely
					from lease_grant(${instanceId}, ${epoch}, ${JSON.stringify(requests)}::text::json)`;
				return rows.map(({ amount, available, lent, ...reply }) => ({
					...reply,
					amount: nanoUsdOfColumn(amount),
					available: available === null ? null : nanoUsdOfColumn(available),
					lent: lent === null ? null : BigInt(lent),
				}));
			} catch (error) {
				throw sqlState(error) === "TG001" ? new InstanceNotLive("the instance is not live", { cause: error }) : error;
			}
		},
		async giveBack(requests) {
			const rows = await statements<{ op: string }>`
				select op from lease_return(${instanceId}, ${epoch}, ${JSON.stringify(requests)}::text::json) as op`;
			return new Set(rows.map(({ op }) => op));
		},
		async flush(settled, openJson) {
			const literals = SettledColumns.of(settled).literals();
			const columns = USAGE_FIELD_NAMES.map((name) => literals[name]);
			try {
				const rows = await statements<{ late: boolean; fresh: number; busy: string[] }>(
					LEASE_SETTLE,
					...[instanceId, epoch, ...columns, openJson],
				);
				// A missing row would leave it open whether the statement was executed, so `onlyRow` throws.
				const { late, fresh, busy } = onlyRow(rows);
				return { late, fresh, busy: new Set(busy) };
			} catch (error) {
				const exceeded = (error as { constraint_name?: unknown } | null)?.constraint_name === "lease_covers_settled";
				throw exceeded ? new LeaseExceeded("more was charged than the lease holds", { cause: error }) : error;
			}
		},
		async settleLate(eventJson) {
			const rows = await statements<{ off: string | null }>`
				select ledger_settle_late(${instanceId}, ${epoch}, ${eventJson}::text::json) as off`;
			const { off } = onlyRow(rows);
			return off === null ? undefined : nanoUsdOfColumn(off);
		},
		async close(keep = []) {
			const rows = await statements<{ closed: number; done: boolean }>`
				select closed, done from lease_close(${instanceId}, ${epoch}, false, ${CLOSE_BATCH}, ${JSON.stringify(keep)}::text::json)`;
			return onlyRow(rows);
		},
		async recall(budgets) {
			const rows = await statements<{ ticket: string }>`
				select lease_recall(${instanceId}, ${epoch}, ${JSON.stringify(budgets)}::text::json) as ticket`;
			return Number(onlyRow(rows).ticket);
		},
		async recalls() {
			const rows = await statements<{ budget: string; ticket: string }>`
				select budget, ticket from lease_recalled(${instanceId}, ${epoch})`;
			return rows.map(({ budget, ticket }) => ({ budget, ticket: Number(ticket) }));
		},
	};
}

/** SQLSTATE code of an error that Postgres reported; undefined for other errors. */
export function sqlState(error: unknown): string | undefined {
	const code = (error as { code?: unknown } | null)?.code;
	return typeof code === "string" && code.length === 5 ? code : undefined;
}
