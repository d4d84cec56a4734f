import { Fault } from "../base/fault.ts";
import { newUuid } from "../base/id.ts";
import { createPgHeartbeatStore } from "../cluster/pg-heartbeat-store.ts";
import { createKey, listKeys } from "../keys/key-admin.ts";
import type { SettledEvent } from "../ledger/event.ts";
import { createPgLedgerStore } from "../ledger/pg-store.ts";
import type { LedgerStore } from "../ledger/store.ts";
import { nanoUsd } from "../money/nano-usd.ts";
import { backdate, DEMO_DATA, type HistoryDeps, quarterOfCustomers } from "./demo-customers.ts";
import { demoWeek, type WeekModel } from "./demo-week.ts";

const KEY_NAMES = { web: `web app ${DEMO_DATA}`, night: `nightly summaries ${DEMO_DATA}` } as const;
/** Name of the instance that the sample usage belongs to. */
const INSTANCE = "demo-history";
const INSTANCE_TTL_MS = 60_000;
const GO_LIVE_ATTEMPTS_MAX = 20;
const OPENED_BEFORE_MS = 8 * 24 * 3_600_000;
const MODELS_MAX = 3;
const KEYS_SHOWN_MAX = 100;

/**
 * Gives the demo's account one week of sample usage, and sample customers three months. Uses the ledger's own
 * statements, so that its checks pass. Runs once; completes an interrupted run.
 */
export async function ensureDemoHistory(
	deps: HistoryDeps,
	{ accountId, models }: { accountId: string; models: readonly WeekModel[] },
): Promise<void> {
	const { statements, clock } = deps;
	await closeUnfinished(deps);
	const keys = await ensureKeys(deps, accountId);
	const [used] = await statements`select 1 from usage_event where key_id in (${keys.webKeyId}, ${keys.nightKeyId})`;
	if (used !== undefined || models.length === 0) return;
	const nowMs = clock.wallMs();
	await backdate(statements, accountId, nowMs - OPENED_BEFORE_MS);
	const week = demoWeek({ nowMs, accountId, ...keys, models: models.slice(0, MODELS_MAX) });
	await book(deps, [...(await quarterOfCustomers(deps, models, nowMs)), ...week]);
}

async function ensureKeys(deps: HistoryDeps, accountId: string): Promise<{ webKeyId: string; nightKeyId: string }> {
	const { items } = await listKeys(deps.statements, accountId, { limit: KEYS_SHOWN_MAX });
	const ensure = async (name: string) =>
		items.find((key) => key.name === name)?.id ?? (await createKey(deps, accountId, { name })).id;
	return { webKeyId: await ensure(KEY_NAMES.web), nightKeyId: await ensure(KEY_NAMES.night) };
}

/** Joins the cluster as an instance, draws credit for the events, settles them and leaves. */
async function book(deps: HistoryDeps, events: readonly SettledEvent[]): Promise<void> {
	const epoch = await goLive(deps);
	const store = createPgLedgerStore(deps, INSTANCE, epoch);
	try {
		await draw(store, events);
		// Writes all events in one flush: an interrupted week would look like a complete one.
		await store.flush(events, "[]");
	} finally {
		await store.close();
	}
}

async function goLive({ statements }: HistoryDeps): Promise<number> {
	const cluster = createPgHeartbeatStore(statements);
	const epoch = await cluster.join(INSTANCE, INSTANCE_TTL_MS);
	for (let attempt = 0; attempt < GO_LIVE_ATTEMPTS_MAX; attempt++) {
		const { seq: applied } = await cluster.position();
		if ((await cluster.goLive(INSTANCE, epoch, applied, INSTANCE_TTL_MS)) === applied) return epoch;
	}
	throw new Fault("service_unavailable", "The demo's history could not be booked: the control log keeps changing.");
}

/** Draws the events' credit from the budgets of the account and of each key. */
async function draw(store: LedgerStore, events: readonly SettledEvent[]): Promise<void> {
	const costs = new Map<string, number>();
	for (const { account, key, charged } of events) {
		for (const budget of [account, key]) costs.set(budget, (costs.get(budget) ?? 0) + charged);
	}
	const wishes = [...costs].map(([budget, cost]) => {
		return { op: newUuid(), budget, want: nanoUsd(cost), min: nanoUsd(cost), again: false, ticket: null };
	});
	const replies = await store.grant(wishes);
	if (replies.some(({ op, amount }) => amount !== wishes.find((wish) => wish.op === op)?.want))
		throw new Fault("service_unavailable", "The demo's history could not be booked: the demo's credit was spent.");
}

/** Closes epochs of interrupted runs, which returns the credit that they had drawn. */
async function closeUnfinished(deps: HistoryDeps): Promise<void> {
	const rows = await deps.statements<{ epoch: number }>`
		select epoch from instance_now where id = ${INSTANCE} and state <> 'left' order by epoch`;
	for (const { epoch } of rows) await createPgLedgerStore(deps, INSTANCE, epoch).close();
}
