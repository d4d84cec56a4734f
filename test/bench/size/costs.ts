/** Cost of console pages and of jobs of the books, for a history of a given size. */
import type postgres from "postgres";
import { findAlerts } from "../../../src/console/alerts/alerts.ts";
import type { ConsoleParts } from "../../../src/console/console-deps.ts";
import { runningRequests } from "../../../src/console/credit/credit.ts";
import { ledgerPage } from "../../../src/console/credit/credit-ledger.ts";
import { readHeldCredit } from "../../../src/console/keys/key-view.ts";
import { readOverview } from "../../../src/console/live/overview.ts";
import { logPage } from "../../../src/console/log/log-page.ts";
import { accountDetail, searchAccounts } from "../../../src/console/operator/operator-accounts.ts";
import { listInstances } from "../../../src/console/operator/operator-cluster.ts";
import { operatorSummary } from "../../../src/console/operator/operator-summary.ts";
import {
	type RevenueFilter,
	revenueFigures,
	revenueSeries,
	serviceFigures,
} from "../../../src/console/operator/revenue.ts";
import { foldUsage } from "../../../src/console/usage/usage-fold.ts";
import { DAY_MS, usageSeries } from "../../../src/console/usage/usage-query.ts";
import { listKeys } from "../../../src/keys/key-admin.ts";
import { reconcile } from "../../../src/ledger/reconciler.ts";
import { listAudit } from "../../../src/ops/audit.ts";
import type { BenchDatabase } from "../product.ts";
import { type Cost, type Counter, createCounter } from "./counted.ts";
import { HEAVY_ACCOUNT, keyId, LIGHT_ACCOUNT } from "./fill.ts";

/** `watcher` must send no other statements during the measurement. Throws if the books do not reconcile. */
export async function costsOf(
	database: BenchDatabase,
	watcher: postgres.Sql,
	{ days, accounts }: { days: number; accounts: number },
): Promise<Map<string, Cost>> {
	const counter = await createCounter(watcher);
	const costs = new Map<string, Cost>();
	const add = (step: string, cost: Cost) => void costs.set(step, cost);
	await consoleSteps({ database, counter, add, days, accounts });
	add("job: add usage to the hourly sums", await counter.cost(() => foldUsage(database.statements)));
	const { ok, checks } = await reconcile(database.statements);
	if (!ok) throw new Error(`the books do not reconcile: ${JSON.stringify(checks.filter((check) => !check.ok))}`);
	add("job: check the books", await counter.cost(() => reconcile(database.statements)));
	const step = (text: string) => counter.cost(() => database.sql.unsafe(text));
	add("job: seal, one step", await step("select state from books_seal(200)"));
	add("job: verify sealed days, one step", await step("select state from books_verify(200)"));
	add("job: close 50 leases", await step("select done from lease_close('gateway-1', 1, false, 50)"));
	return costs;
}

const PAGE = { asked: 51, after: null };
const EVERYTHING = { fromMs: null, toMs: null, model: null, keyId: null, projectId: null, status: null, batchId: null };
const VISITS = 3;
const ROUNDS = 4;

interface Visited {
	readonly database: BenchDatabase;
	readonly counter: Counter;
	readonly days: number;
	readonly accounts: number;
	add(name: string, cost: Cost): void;
}

async function consoleSteps({ database, counter, add, days, accounts }: Visited): Promise<void> {
	const { statements } = database;
	const nowMs = Date.now();
	const log = (account: string, filter: object) => logPage(statements, account, { ...EVERYTHING, ...filter }, PAGE);
	const usage = (account: string, range: number, bucket: "hour" | "day") =>
		usageSeries(statements, account, {
			fromMs: nowMs - range * DAY_MS,
			toMs: nowMs,
			bucket,
			group: "model",
			model: null,
			keyId: null,
			projectId: null,
			status: null,
		});
	const revenue = (group: RevenueFilter["group"]): RevenueFilter => {
		return { fromMs: nowMs - 29 * DAY_MS, toMs: nowMs, bucket: "day", group, model: null };
	};
	// Parts of the summary that are not read from Postgres.
	const parts = {
		statements,
		config: { topUpSecondLook: null },
		deployments: { current: async () => ({ replicas: [] }) },
	};
	const pages: Record<string, () => Promise<unknown>> = {
		overview: () => readOverview(statements, HEAVY_ACCOUNT, nowMs),
		"overview, a small account": () => readOverview(statements, LIGHT_ACCOUNT, nowMs),
		"usage, 30 days by hour": () => usage(HEAVY_ACCOUNT, 30, "hour"),
		"usage, 400 days by day": () => usage(HEAVY_ACCOUNT, 399, "day"),
		"requests, newest": () => log(HEAVY_ACCOUNT, {}),
		"requests, from the middle of the history": () => log(HEAVY_ACCOUNT, { toMs: nowMs - (days / 2) * DAY_MS }),
		"requests, failed ones": () => log(HEAVY_ACCOUNT, { status: "failed" }),
		"requests for an unknown model": () => log(HEAVY_ACCOUNT, { model: "none" }),
		"requests of a key for an unknown model": () => log(HEAVY_ACCOUNT, { model: "none", keyId: keyId(0, 1) }),
		"requests, failed, for an unknown model": () => log(HEAVY_ACCOUNT, { model: "none", status: "failed" }),
		"requests of a key without requests": () => log(HEAVY_ACCOUNT, { keyId: keyId(0, 2) }),
		"requests, a small account": () => log(LIGHT_ACCOUNT, {}),
		"credit with its ledger": () => ledgerPage(statements, HEAVY_ACCOUNT, PAGE),
		"credit with its ledger, a small account": () => ledgerPage(statements, LIGHT_ACCOUNT, PAGE),
		"running requests": () => runningRequests(statements, HEAVY_ACCOUNT),
		keys: () =>
			Promise.all([
				listKeys(statements, HEAVY_ACCOUNT, { limit: 50 }),
				readHeldCredit("key", statements, HEAVY_ACCOUNT),
			]),
		"operator: summary": () => operatorSummary(parts as unknown as ConsoleParts),
		"operator: revenue by model, 30 days": () => revenueSeries(statements, revenue("model")),
		"operator: revenue by account, 30 days": () => revenueSeries(statements, revenue("account")),
		"operator: revenue, figures": () => revenueFigures(statements, revenue("model"), nowMs),
		"operator: speeds, loads, margins": () => serviceFigures(statements, revenue("model")),
		"operator: accounts": () => searchAccounts(statements, null, PAGE),
		"operator: accounts, one by its address": () =>
			searchAccounts(statements, `${Math.floor(accounts / 2)}@example.com`, PAGE),
		"operator: account": () => accountDetail(statements, LIGHT_ACCOUNT, nowMs),
		"operator: instances": () => listInstances(statements),
		"operator: audit": () => listAudit(statements, {}, PAGE),
		"job: alerts": () => findAlerts(statements),
	};
	for (const [name, ask] of Object.entries(pages)) {
		const sessions = async () => {
			for (let visit = 0; visit < VISITS; visit++) await ask();
		};
		// Background work and a connection's first catalogue reads only add, so the lowest count of several rounds is used.
		const rounds: Cost[] = [];
		while (rounds.length < ROUNDS) rounds.push(await counter.cost(sessions, VISITS));
		add(`console: ${name}`, rounds.toSorted((one, other) => one.pages - other.pages)[0] as Cost);
	}
}
