import type { Clock } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import { appendControl } from "../cluster/control-log.ts";
import { pendingInstances, waitApplied } from "../cluster/fence.ts";
import type { Statements } from "../db/statements.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { LedgerStore } from "./store.ts";
import { LeaseExceeded, NotLive } from "./store.ts";

/** How long a request that would hear 402 waits for other instances to hand back what lies idle. */
const RECALL_WAIT_MS = 250;

interface GrantRow {
	op: string;
	amount: string;
	available: string | null;
	elsewhere: boolean;
	live: number;
}

/** The ledger's statements on Postgres; the functions stand in `db/functions/ledger.sql`. */
export function createPgLedgerStore(
	deps: { statements: Statements; clock: Clock },
	instanceId: string,
	epoch: number,
): LedgerStore {
	const { statements, clock } = deps;
	return {
		async grant(requests) {
			try {
				const rows = await statements<GrantRow>`
					select op, amount, available, elsewhere, live
					from ledger_grant(${instanceId}, ${epoch}, ${JSON.stringify(requests)}::text::json)`;
				return rows.map((row) => ({
					op: row.op,
					amount: nanoUsdOfColumn(row.amount),
					available: row.available === null ? null : nanoUsdOfColumn(row.available),
					elsewhere: row.elsewhere,
					live: row.live,
				}));
			} catch (error) {
				throw sqlState(error) === "TG001" ? new NotLive("the instance is not live", { cause: error }) : error;
			}
		},
		async giveBack(requests) {
			await statements`select ledger_return(${instanceId}, ${epoch}, ${JSON.stringify(requests)}::text::json)`;
		},
		async flush(settledJson, openJson) {
			try {
				const [row] = await statements<{ state: "ok" | "late" }>`
					select ledger_flush(${instanceId}, ${epoch}, ${settledJson}::text::json, ${openJson}::text::json) as state`;
				return row?.state ?? "ok";
			} catch (error) {
				const exceeded = (error as { constraint_name?: unknown } | null)?.constraint_name === "lease_covers_settled";
				throw exceeded ? new LeaseExceeded("more was charged than the lease holds", { cause: error }) : error;
			}
		},
		async settleLate(eventJson) {
			await statements`select ledger_settle_late(${instanceId}, ${epoch}, ${eventJson}::text::json)`;
		},
		async creditUndelivered(requestId, delivered) {
			// What was charged is read from the books: a request that they know better from elsewhere is not credited.
			await statements`
				select ledger_book(${newId("led")}, e.account_id, 'credit_note', e.charged_nano_usd - ${delivered}::bigint,
					'recovered:' || e.request_id, 'recovery', 'not delivered before a crash', false)
				from usage_event e
				where e.request_id = ${requestId} and e.basis = 'recovered' and e.charged_nano_usd > ${delivered}::bigint`;
		},
		async close() {
			await statements`select ledger_close(${instanceId}, ${epoch}, false)`;
		},
		async recall(budget) {
			const seq = await appendControl(statements, "recall", budget, { instance: instanceId, epoch });
			await waitApplied({ pending: pendingInstances(statements), clock }, seq, {
				deadlineMs: RECALL_WAIT_MS,
				graceMs: 0,
			});
		},
	};
}

/** The five characters of an SQLSTATE, if the error came from Postgres. */
export function sqlState(error: unknown): string | undefined {
	const code = (error as { code?: unknown } | null)?.code;
	return typeof code === "string" && code.length === 5 ? code : undefined;
}
