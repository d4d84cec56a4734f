import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { newUuid } from "../base/id.ts";
import { confirmTopUp, createTopUp, listTopUps } from "../billing/top-ups.ts";
import { createPgHeartbeatStore } from "../cluster/heartbeat.ts";
import type { Statements } from "../db/statements.ts";
import { createAccount, findAccount } from "../keys/account-admin.ts";
import { createKey, type KeyMakerDeps, listKeys } from "../keys/key-admin.ts";
import type { SettledEvent } from "../ledger/event.ts";
import { createPgLedgerStore } from "../ledger/pg-store.ts";
import type { LedgerStore } from "../ledger/store.ts";
import { NANO_PER_USD, nanoUsd, type PicoUsdPerUnit } from "../money/nano-usd.ts";
import { demoQuarter, demoWeek, type WeekModel } from "./demo-week.ts";

/** Suffix of the names of keys that exist only for sample usage. Their secrets were not stored. */
export const DEMO_DATA_SUFFIX = "(demo data)";
const KEY_NAMES = { web: `web app ${DEMO_DATA_SUFFIX}`, night: `nightly summaries ${DEMO_DATA_SUFFIX}` } as const;
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
	const store = createPgLedgerStore(deps, INSTANCE, await goLive(deps));
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

interface HistoryDeps extends KeyMakerDeps {
	readonly clock: Clock;
}

/** Sample customers: dollars of their top-up, fraction of the usage, and days since their last request. */
const CUSTOMERS = [
	{ name: "Northwind Search", usd: 500, busy: 0.14, quietDays: 0 },
	{ name: "Alpine Robotics", usd: 300, busy: 0.1, quietDays: 0 },
	{ name: "Lumen Health", usd: 200, busy: 0.07, quietDays: 0 },
	{ name: "Harbour Legal", usd: 100, busy: 0.05, quietDays: 3 },
	{ name: "Pixel & Sons", usd: 100, busy: 0.03, quietDays: 40 },
];
/** Sample models that occur only in the history; each has the first model's properties and other rates. */
const MODELS = [
	{ suffix: "large", times: 6 },
	{ suffix: "mini", times: 0.5 },
];
const CONTEXT_LENGTH = 131_072;
const MAX_OUTPUT_TOKENS = 4_096;
const OPENED_BEFORE_DAYS = 92;
const OPENED_APART_DAYS = 9;
const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const REPLICA_PLACES = 8;
/** Cost of the sample models to the operator, as a fraction of their rates. */
const COST_SHARE = 0.45;

/** Creates sample customers with top-ups, and returns three months of their usage, which the caller settles. */
async function quarterOfCustomers(
	deps: HistoryDeps,
	models: readonly WeekModel[],
	nowMs: number,
): Promise<SettledEvent[]> {
	const sold = await ensureModels(deps.statements, models[0] as WeekModel);
	const events: SettledEvent[] = [];
	for (const [place, { name, usd, ...usage }] of CUSTOMERS.entries()) {
		const made = await ensureCustomer(deps, `demo-${place + 1}@localhost`, `${name} ${DEMO_DATA_SUFFIX}`, usd);
		const openedAtMs = nowMs - (OPENED_BEFORE_DAYS - OPENED_APART_DAYS * place) * DAY_MS;
		await backdate(deps.statements, made.accountId, openedAtMs);
		// Each customer uses the models in a different order of preference.
		const order = [...sold.slice(place % sold.length), ...sold.slice(0, place % sold.length)];
		const quarter = demoQuarter({ nowMs, ...made, ...usage, seed: place + 1, models: order });
		events.push(...quarter.filter(({ at }) => at > openedAtMs));
	}
	await writeLoad(deps.statements, events);
	return events;
}

async function ensureCustomer(deps: HistoryDeps, email: string, name: string, usd: number) {
	const { statements } = deps;
	const found = await findAccount(statements, email);
	const { id: accountId } = found ?? (await createAccount(statements, { email, name, vouched: true }));
	const reference = `demo ${accountId}`;
	const { items } = await listTopUps(statements, { accountId }, { limit: 1 });
	const amountNanoUsd = nanoUsd(usd * NANO_PER_USD);
	const topUp = items[0] ?? (await createTopUp(statements, { accountId, amountNanoUsd, method: "demo", reference }));
	if (topUp.state === "pending") await confirmTopUp(statements, topUp.id, "demo");
	const keys = await listKeys(statements, accountId, { limit: 1 });
	const key = keys.items[0] ?? (await createKey(deps, accountId, { name: `production ${DEMO_DATA_SUFFIX}` }));
	return { accountId, webKeyId: key.id, nightKeyId: key.id };
}

/** Returns the first model and the sample models, and stores their rates and costs. */
async function ensureModels(statements: Statements, first: WeekModel): Promise<WeekModel[]> {
	const { input, output } = first.rateCard;
	const rate = (of: number, times: number) => Math.round(of * times) as PicoUsdPerUnit;
	const made = MODELS.map(({ suffix, times }): WeekModel => {
		const id = `${first.id}-${suffix}`;
		const rates = { input: rate(input, times), cachedInput: rate(input, times), output: rate(output, times) };
		const rateCard = { ...first.rateCard, ...rates, id: `${id}@1`, version: 1 };
		return { id, contextLength: CONTEXT_LENGTH, maxOutputTokens: MAX_OUTPUT_TOKENS, rateCard };
	});
	for (const { id, rateCard } of made)
		await statements`
			insert into rate_card (id, model, version, input, cached_input, output, request, image, audio_second, search)
			values (${rateCard.id}, ${id}, 1, ${rateCard.input}, ${rateCard.cachedInput}, ${rateCard.output}, 0, 0, 0, 0) on conflict do nothing`;
	for (const { id, rateCard } of [first, ...made])
		await statements`
			insert into model_cost (model, input_pico_usd, output_pico_usd)
			values (${id}, ${rate(rateCard.input, COST_SHARE)}, ${rate(rateCard.output, COST_SHARE)}) on conflict do nothing`;
	return [made[0] as WeekModel, first, made[1] as WeekModel];
}

/** Writes the load of the replicas that these events imply. */
async function writeLoad(statements: Statements, events: readonly SettledEvent[]): Promise<void> {
	const loads = [...Map.groupBy(events, ({ at, model }) => `${Math.floor(at / HOUR_MS)} ${model}`).values()].map(
		(own) => ({
			at: Math.floor((own[0]?.at ?? 0) / HOUR_MS) * 3600,
			model: own[0]?.model,
			used: own.reduce((sum, { ms }) => sum + ms / 1000, 0),
		}),
	);
	await statements`
		insert into replica_hour
		select usage_bucket(to_timestamp(l.at), 40), l.model, l.model || '#0', 3600 * count(*), sum(l.used), 3600 * ${REPLICA_PLACES}::integer * count(*), 0,
			to_timestamp(max(l.at))
		from json_to_recordset(${JSON.stringify(loads)}::text::json) as l(at double precision, model text, used double precision)
		group by 1, 2 on conflict do nothing`;
}

/** Moves the account's creation and payments to a time before its first usage, so that no past balance is negative. */
async function backdate(statements: Statements, accountId: string, atMs: number): Promise<void> {
	const at = new Date(atMs).toISOString();
	await statements`update account set created_at = ${at}::timestamptz, signed_in_at = ${at}::timestamptz where id = ${accountId}`;
	await statements`update ledger_entry set created_at = ${at}::timestamptz where account_id = ${accountId}`;
	await statements`update top_up set created_at = ${at}::timestamptz, decided_at = ${at}::timestamptz where account_id = ${accountId}`;
}
