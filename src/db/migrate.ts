import postgres from "postgres";
import type { Log } from "../base/log.ts";
import billingFunctions from "./functions/billing.sql" with { type: "text" };
import clusterFunctions from "./functions/cluster.sql" with { type: "text" };
import keyFunctions from "./functions/keys.sql" with { type: "text" };
import ledgerFunctions from "./functions/ledger.sql" with { type: "text" };
import usageFunctions from "./functions/usage.sql" with { type: "text" };
import { migrations } from "./migrations/list.ts";

/** Any number will do, as long as all versions of the service use the same one. */
const ADVISORY_LOCK = 7_305_441_902;

/**
 * Brings the schema up to date, each migration in a transaction of its own, under an advisory lock: instances that
 * boot together wait for the first. Returns the names of those that were applied now.
 */
export async function migrate(deps: { log: Log }, url: string): Promise<readonly string[]> {
	const client = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
	try {
		await client`select pg_advisory_lock(${ADVISORY_LOCK})`;
		await client`create table if not exists schema_migration (name text primary key, applied_at timestamptz not null default now())`;
		const known = new Set((await client<{ name: string }[]>`select name from schema_migration`).map((row) => row.name));
		const applied: string[] = [];
		for (const { name, sql } of migrations) {
			if (known.has(name)) continue;
			await client.begin(async (transaction) => {
				await transaction.unsafe(sql);
				await transaction`insert into schema_migration (name) values (${name})`;
			});
			applied.push(name);
			deps.log.info("applied a migration", { name });
		}
		// Functions carry no data: each version lays down its own, after the tables that they name.
		await client.begin(async (transaction) => {
			await transaction`insert into control_clock (id, seq) values (1, 0) on conflict do nothing`;
			await transaction.unsafe(clusterFunctions);
			await transaction.unsafe(ledgerFunctions);
			await transaction.unsafe(keyFunctions);
			await transaction.unsafe(usageFunctions);
			await transaction.unsafe(billingFunctions);
		});
		return applied;
	} finally {
		await client.end({ timeout: 1 });
	}
}

/** True if all migrations and functions of this version are there; those of a newer version may be there too. */
export async function isMigrated(url: string): Promise<boolean> {
	const client = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
	try {
		// The functions come last, those of billing last of all.
		const [row] = await client<{ ready: boolean }[]>`
			select to_regclass('schema_migration') is not null and to_regproc('topup_confirm') is not null as ready`;
		if (row?.ready !== true) return false;
		const known = new Set(
			(await client<{ name: string }[]>`select name from schema_migration`).map(({ name }) => name),
		);
		return migrations.every(({ name }) => known.has(name));
	} finally {
		await client.end({ timeout: 1 });
	}
}
