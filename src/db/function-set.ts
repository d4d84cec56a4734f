import type postgres from "postgres";
import { Fault } from "../base/fault.ts";
import alertFunctions from "./functions/alerts.sql" with { type: "text" };
import auditFunctions from "./functions/audit.sql" with { type: "text" };
import autoTopUpFunctions from "./functions/auto-top-up.sql" with { type: "text" };
import batchFunctions from "./functions/batch.sql" with { type: "text" };
import billingFunctions from "./functions/billing.sql" with { type: "text" };
import booksFunctions from "./functions/books.sql" with { type: "text" };
import booksCheckFunctions from "./functions/books-check.sql" with { type: "text" };
import capFunctions from "./functions/caps.sql" with { type: "text" };
import clusterFunctions from "./functions/cluster.sql" with { type: "text" };
import fileFunctions from "./functions/files.sql" with { type: "text" };
import idempotencyFunctions from "./functions/idempotency.sql" with { type: "text" };
import keyFunctions from "./functions/keys.sql" with { type: "text" };
import leaseFunctions from "./functions/lease.sql" with { type: "text" };
import ledgerFunctions from "./functions/ledger.sql" with { type: "text" };
import limitFunctions from "./functions/limits.sql" with { type: "text" };
import lostActFunctions from "./functions/lost-acts.sql" with { type: "text" };
import peopleFunctions from "./functions/people.sql" with { type: "text" };
import projectFunctions from "./functions/projects.sql" with { type: "text" };
import removalFunctions from "./functions/removal.sql" with { type: "text" };
import usageFunctions from "./functions/usage.sql" with { type: "text" };
import { inTransaction } from "./in-transaction.ts";
import { addUrlSetting, formatSearchPath, quoteName, searchPathNames, setSearchPath } from "./session-settings.ts";

/** Function files in the order in which they are created: a function may use those of earlier files. */
const FILES: readonly string[] = [
	auditFunctions,
	clusterFunctions,
	capFunctions,
	projectFunctions,
	leaseFunctions,
	ledgerFunctions,
	keyFunctions,
	lostActFunctions,
	usageFunctions,
	billingFunctions,
	autoTopUpFunctions,
	fileFunctions,
	batchFunctions,
	limitFunctions,
	idempotencyFunctions,
	booksFunctions,
	booksCheckFunctions,
	removalFunctions,
	alertFunctions,
	peopleFunctions,
];

const digest = new Bun.CryptoHasher("sha256").update(FILES.join("\n")).digest("hex");

/**
 * Schema of this version's SQL functions. Its name contains the hash of their text, so equal names mean equal
 * functions. Functions are never replaced, so the start of one version does not affect the running ones.
 */
export const FUNCTION_SET = `tollgate_${digest.slice(0, 12)}`;
const ANY_SET = /^tollgate_[0-9a-f]{12}$/;

/** Number of function schemas that are kept: those of the versions started last, which may still run or be restored. */
const SETS_KEPT = 16;

/** Creates the functions unless they exist and records that this version uses them, in one transaction. */
export async function createFunctions(client: postgres.Sql, version: string, setsKept = SETS_KEPT): Promise<void> {
	await inTransaction(client, async (transaction) => {
		if (!(await hasFunctions(transaction))) {
			await transaction.unsafe(`create schema ${FUNCTION_SET}`);
			await setSearchPath(transaction, withFunctions(await searchPath(transaction)), true);
			for (const file of FILES) await transaction.unsafe(file);
		}
		await transaction`
			insert into function_set (name, version) values (${FUNCTION_SET}, ${version})
			on conflict (name) do update set used_at = clock_timestamp()`;
	});
	await dropFunctions(client, setsKept);
}

export async function checkMayMakeSchema(client: postgres.Sql): Promise<void> {
	const [row] = await client<{ may: boolean; database: string; role: string }[]>`
		select has_database_privilege(current_database(), 'CREATE') as may, current_database() as database, current_user as role`;
	if (row === undefined || row.may) return;
	throw new Fault(
		"service_unavailable",
		`This version's functions need a schema of their own: \`grant create on database ${quoteName(row.database)} to ${quoteName(row.role)}\`.`,
	);
}

/**
 * Drops function schemas of old versions. Keeps this version's and those of the versions started last, `kept` in all.
 * Never drops schemas that `function_set` does not list, or that another role owns.
 */
export async function dropFunctions(client: postgres.Sql, kept: number): Promise<void> {
	const sets = await client<{ name: string }[]>`
		select nspname as name from pg_namespace join function_set on name = nspname
		where nspname ~ ${ANY_SET.source} and nspname <> ${FUNCTION_SET} and pg_has_role(nspowner, 'USAGE')
		order by used_at desc, nspname offset ${kept - 1}`;
	for (const { name } of sets) {
		await inTransaction(client, async (transaction) => {
			await transaction.unsafe(`drop schema if exists ${name} cascade`);
			await transaction`delete from function_set where name = ${name}`;
		});
	}
}

export async function hasFunctions(client: postgres.Sql | postgres.TransactionSql): Promise<boolean> {
	const [row] = await client`select 1 from pg_namespace where nspname = ${FUNCTION_SET}`;
	return row !== undefined;
}

/** Returns the URL with this version's functions first in the search path. `client` is connected to `url`. */
export async function withFunctionSet(client: postgres.Sql, url: string): Promise<string> {
	return addUrlSetting(url, "search_path", withFunctions(await searchPath(client)));
}

/** True if `withFunctionSet` of this version made the URL. */
export const hasFunctionSet = (url: string): boolean => url.includes(`search_path=${FUNCTION_SET}`);

/** Removes the function schema from the search path, so that no tables are created in it. */
export async function removeFunctionsFromPath(client: postgres.Sql): Promise<void> {
	await setSearchPath(client, await searchPath(client));
}

/** Checks that this role may use the function schema and call all its functions. */
export async function checkMayCallFunctions(client: postgres.Sql): Promise<void> {
	const [row] = await client<{ mayUse: boolean; mayCall: boolean; role: string }[]>`
		select has_schema_privilege(oid, 'USAGE') as "mayUse", current_user as role, not exists (
			select from pg_proc p where pronamespace = n.oid and not has_function_privilege(p.oid, 'EXECUTE')) as "mayCall"
		from pg_namespace n where nspname = ${FUNCTION_SET}`;
	if (row === undefined || (row.mayUse && row.mayCall)) return;
	// Postgres lets every role call a function unless its owner's default privileges forbid that.
	const lacking = [
		row.mayUse ? [] : ["usage on schema"],
		row.mayCall ? [] : ["execute on all functions in schema"],
	].flat();
	throw new Fault(
		"service_unavailable",
		`This version's functions are another role's: ${lacking.map((what) => `\`grant ${what} ${FUNCTION_SET} to ${quoteName(row.role)}\``).join(", ")}.`,
	);
}

/** Search path of the connection without function schemas. */
async function searchPath(client: postgres.Sql | postgres.TransactionSql): Promise<string> {
	return formatSearchPath((await searchPathNames(client)).filter((name) => !ANY_SET.test(name)));
}

const withFunctions = (path: string): string => (path === "" ? FUNCTION_SET : `${FUNCTION_SET}, ${path}`);
