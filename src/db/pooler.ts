import type postgres from "postgres";
import { systemClock, withDeadline } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { withClient } from "./new-client.ts";
import { noResponseError } from "./outage.ts";

/** Runs a statement in one of two database sessions and returns its rows. */
export type Session = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const TOKEN_SETTING = "tollgate.doctor";

/**
 * True if a pooler shares server sessions between transactions, so that a setting or LISTEN of one session takes effect
 * in another. Poolers that keep a server session per client cause no problem.
 */
export async function isPooledByTransaction(a: Session, b: Session): Promise<boolean> {
	const token = crypto.randomUUID();
	const seenBy = async (session: Session) =>
		(await session(`select pg_backend_pid() as pid, current_setting('${TOKEN_SETTING}', true) as token`))[0];
	await a(`select set_config('${TOKEN_SETTING}', '${token}', false)`);
	const before = await seenBy(a);
	// Such a pooler assigns any free server session: b gets the session that a had, or a gets another.
	const others = await seenBy(b);
	const after = await seenBy(a);
	const isShared = others?.pid === before?.pid || others?.token === token;
	return isShared || after?.pid !== before?.pid || after?.token !== token;
}

/** Milliseconds for a connection to answer. A pooler accepts connections even if no server can answer. */
const ANSWER_MS_MAX = 10_000;

/**
 * Checks that `client` has its own server session. Must be the first check: a lock of the start that is taken in a
 * shared session would stay for ever.
 */
export async function checkOwnSession(client: postgres.Sql, url: string): Promise<void> {
	const problem = await sessionProblem(client, url);
	if (problem !== undefined) throw new Fault("service_unavailable", problem);
}

/** Like `checkOwnSession`, with new clients: a pooler may change its mode while the service runs. */
export const pooledProblem = (url: string) => withClient(url, (client) => sessionProblem(client, url));

async function sessionProblem(client: postgres.Sql, url: string): Promise<string | undefined> {
	const session = (of: postgres.Sql) => async (statement: string) => [...(await of.unsafe(statement))];
	const isPooled = (other: postgres.Sql) => inTime(isPooledByTransaction(session(client), session(other)));
	if (!(await withClient(url, isPooled))) return undefined;
	return "A pooler hands sessions of the database around between transactions: connect to PostgreSQL itself, or set the pooler to session mode.";
}

function inTime<T>(answer: PromiseLike<T>): Promise<T> {
	return withDeadline(systemClock, answer, ANSWER_MS_MAX, noResponseError);
}
