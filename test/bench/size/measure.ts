/** All figures of one size, one step after the other: each changes the books as a running service would. */
import postgres from "postgres";
import type { BenchDatabase } from "../product.ts";
import { openBenchDatabase } from "../product.ts";
import { consoleSteps } from "./console-steps.ts";
import type { Cost, Counter } from "./counted.ts";
import { createCounter } from "./counted.ts";
import type { Filled } from "./fill.ts";
import { gatewaySteps } from "./gateway-steps.ts";
import { booksSteps, closeSteps, ledgerSteps } from "./ledger-steps.ts";

/** A machine with other work takes its time: what a step costs is counted in pages. */
const DEADLINE_MS = 10 * 60_000;

export interface Measured {
	readonly database: BenchDatabase;
	readonly counter: Counter;
	/** For journals and catalogues. */
	readonly folder: string;
	readonly secrets: readonly string[];
	readonly days: number;
	readonly accounts: number;
	add(name: string, cost: Cost): void;
	/** A figure that is no statement's. */
	note(name: string, unit: string, value: number): void;
	say(line: string): void;
}

/** In this order: closing an epoch ends what the others need. */
const STEPS = {
	disk: diskNotes,
	console: consoleSteps,
	gateway: gatewaySteps,
	ledger: ledgerSteps,
	books: booksSteps,
	close: closeSteps,
} as const;
export type StepName = keyof typeof STEPS;
export const STEP_NAMES = Object.keys(STEPS) as StepName[];

export interface SizeFigures {
	readonly filled: Omit<Filled, "secrets">;
	readonly postgres: string;
	readonly costs: Record<string, Cost>;
	readonly notes: Record<string, { readonly unit: string; readonly value: number }>;
}

export async function measureSize(
	filled: Filled,
	server: { url: string },
	folder: string,
	say: (line: string) => void,
	steps: readonly StepName[],
): Promise<SizeFigures> {
	const database = await openBenchDatabase(server.url, DEADLINE_MS);
	const watcher = postgres(server.url, { max: 1, onnotice: () => {} });
	const counter = await createCounter(watcher);
	const costs: Record<string, Cost> = {};
	const notes: SizeFigures["notes"] = {};
	const { secrets, days, size } = filled;
	const measured: Measured = {
		database,
		counter,
		folder,
		secrets,
		days,
		accounts: size.accounts,
		say,
		add(name, cost) {
			costs[name] = cost;
			say(
				`${name}: ${cost.pages.toFixed(1)} pages, ${cost.statements.toFixed(2)} statements, ${cost.walBytes.toFixed(0)} bytes of WAL, ${cost.ms.toFixed(2)} ms`,
			);
		},
		note(name, unit, value) {
			notes[name] = { unit, value };
			say(`${name}: ${value.toFixed(1)} ${unit}`);
		},
	};
	try {
		for (const name of steps) await STEPS[name](measured);
		const [row] = await watcher<{ version: string }[]>`select current_setting('server_version') as version`;
		return { filled: { size, days }, postgres: row?.version ?? "", costs, notes };
	} finally {
		await watcher.end();
		await database.close();
	}
}

async function diskNotes({ database, accounts, note }: Measured): Promise<void> {
	const [row] = await database.sql<{ usage: number; rows: number; hours: number; others: number; all: number }[]>`
		select pg_total_relation_size('usage_event')::float8 as usage, (select count(*) from usage_event)::float8 as rows,
			pg_total_relation_size('usage_hour')::float8 as hours, pg_database_size(current_database())::float8 as all,
			(select sum(pg_total_relation_size(t::regclass)) from unnest(array['account', 'api_key', 'budget', 'ledger_entry', 'top_up', 'lease', 'lease_op', 'sealed_lease', 'sealed_budget']) t)::float8 as others`;
	if (row === undefined) throw new Error("the database gives no sizes");
	note("settled requests", "rows", row.rows);
	note("disk, all", "MB", row.all / 1e6);
	note("disk of a settled request", "bytes", row.usage / row.rows);
	note("disk of its share of the sums by hour", "bytes", row.hours / row.rows);
	note("disk of an account with two keys, a top-up and two leases", "bytes", row.others / accounts);
}
