import type postgres from "postgres";
import { systemClock, withDeadline } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { FUNCTION_SET, searchPathLost, urlWithFunctions } from "./function-set.ts";
import { newClient, withClient } from "./new-client.ts";
import { checkRequiredSettings, withRequiredSettings } from "./session-settings.ts";

/** Runs a statement in one of our sessions and returns its rows. */
export type Session = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const TOKEN_SETTING = "tollgate.doctor";

/**
 * Whether a pooler lets two of our sessions share server sessions by transaction, so that a setting or LISTEN of one
 * ends up in the other. Poolers that assign a server session per client are fine.
 */
export async function isPooledByTransaction(a: Session, b: Session): Promise<boolean> {
	const token = crypto.randomUUID();
	const seenBy = async (session: Session) =>
		(await session(`select pg_backend_pid() as pid, current_setting('${TOKEN_SETTING}', true) as token`))[0];
	await a(`select set_config('${TOKEN_SETTING}', '${token}', false)`);
	const before = await seenBy(a);
	// A transaction-mode pooler assigns any free server session: b gets the one that a had, or a gets another.
	const others = await seenBy(b);
	const after = await seenBy(a);
	const isShared = others?.pid === before?.pid || others?.token === token;
	return isShared || after?.pid !== before?.pid || after?.token !== token;
}

/**
 * Settings that our clients request at connection (`statements.ts`, `transactional.ts`), as the server shows them. The
 * values are unique, so that they can be recognized.
 */
const SETTINGS: Readonly<Record<string, string>> = {
	statement_timeout: "30001ms",
	lock_timeout: "501ms",
	idle_in_transaction_session_timeout: "30002ms",
	"tollgate.control_at_commit": "on",
};
/** Settings that a pooler must pass on. */
const SETTING_NAMES = ["search_path", ...Object.keys(SETTINGS)].join(", ");
/** Deadline of a connection. A pooler accepts connections even if no server can answer. */
const ANSWER_MS_MAX = 10_000;

/**
 * Checks that `client` has its own server session. Must be the first check: a shared session would keep a start's lock
 * for ever.
 */
export async function checkOwnSession(client: postgres.Sql, url: string): Promise<void> {
	const session = (of: postgres.Sql) => async (statement: string) => [...(await of.unsafe(statement))];
	const isPooled = (other: postgres.Sql) => inTime(isPooledByTransaction(session(client), session(other)));
	if (!(await withClient(url, isPooled))) return;
	throw new Fault(
		"service_unavailable",
		"A pooler hands sessions of the database around between transactions: connect to PostgreSQL itself, or set the pooler to session mode.",
	);
}

/** URL for clients, with this version's functions and the required settings. `client` is connected to `url`. */
export async function urlForClients(client: postgres.Sql, url: string): Promise<string> {
	return urlWithFunctions(client, await withRequiredSettings(client, url));
}

/**
 * Fault if connections with `urlForClients` lack their search_path or required settings. Returns names of other lost
 * settings: a pooler may ignore unknown ones.
 */
export async function lostSettings(prepared: string): Promise<readonly string[]> {
	const client = newClient(prepared, {
		connect_timeout: 10,
		connection: SETTINGS as Record<string, string>,
	});
	try {
		const names = Object.keys(SETTINGS);
		const columns = ["search_path", ...names].map((name) => `current_setting('${name}', true) as "${name}"`);
		const [row] = await inTime(client.unsafe<Record<string, string | null>[]>(`select ${columns.join(", ")}`));
		// Not `checkFunctions`, because before the first start the path names a schema that does not exist.
		if (row?.search_path?.split(",")[0]?.trim() !== FUNCTION_SET) throw searchPathLost();
		await inTime(checkRequiredSettings(client));
		return names.filter((name) => row[name] !== SETTINGS[name]);
	} catch (error) {
		const message = (error as { message?: unknown }).message;
		if (typeof message !== "string" || !isRefusedSetting(error)) throw error;
		throw new Fault(
			"service_unavailable",
			`A pooler refuses what connections to the database begin with (${message}): connect to PostgreSQL itself, or have the pooler pass these settings on: ${SETTING_NAMES}.`,
			{ cause: error },
		);
	} finally {
		await client.end({ timeout: 1 });
	}
}

/** PgBouncer's error for a setting that it is not configured to pass on or ignore; PostgreSQL knows all of them. */
function isRefusedSetting(error: unknown): boolean {
	return /^unsupported startup parameter/.test(String((error as { message?: unknown }).message));
}

function inTime<T>(answer: PromiseLike<T>): Promise<T> {
	return withDeadline(systemClock, answer, ANSWER_MS_MAX, noResponse);
}

/** Error for a connection that was accepted but not answered. */
export function noResponse(): Error {
	const message =
		"it takes connections and does not answer: it hangs, or a pooler before it is paused or has none free";
	return Object.assign(new Error(message), { code: "SILENT" });
}
