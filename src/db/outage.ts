/** The answer did not come in time: the statement may or may not have been carried out. */
export class DatabaseTimeout extends Error {
	override readonly name = "DatabaseTimeout" as const;
}

/** The statement was not carried out: too many wait for a connection, or a row stayed locked. */
export class DatabaseBusy extends Error {
	override readonly name = "DatabaseBusy" as const;
}

/** The answer does not fit the statement: it may or may not have been carried out. */
export class AnswerLost extends Error {
	override readonly name = "AnswerLost" as const;
}

/** Depth of the search in the chain of causes: the query builder wraps the driver's errors. */
const CAUSES_MAX = 5;

/** Codes of the driver and of the operating system: the connection could not be made, or broke. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
	"CONNECTION_CLOSED",
	"CONNECTION_ENDED",
	"CONNECTION_DESTROYED",
	"CONNECT_TIMEOUT",
	"ECONNREFUSED",
	"ECONNRESET",
	"ECONNABORTED",
	"EPIPE",
	"ETIMEDOUT",
	"EHOSTUNREACH",
	"EHOSTDOWN",
	"ENETUNREACH",
	"ENETDOWN",
	"ENOTFOUND",
	"EAI_AGAIN",
]);

/** Those of them that only an established connection can have. */
const CUT_CODES: ReadonlySet<unknown> = new Set([
	"CONNECTION_CLOSED",
	"CONNECTION_DESTROYED",
	"ECONNRESET",
	"EPIPE",
	"ETIMEDOUT",
]);

/**
 * SQLSTATE classes and codes (PostgreSQL, appendix A) that are not about the statement:
 * - 08: connection exceptions; 53: too few resources; 58: a system or file error of the server.
 * - 57P01 to 57P05: the server starts, stops or was told to end the connection.
 * - 25006: a standby that only reads, as in the middle of a switch-over.
 * - 26000, 42P05: prepared statements are missing or another session's, since a pooler now shares sessions.
 */
const SERVER_STATES = /^(08...|53...|57P0[1-5]|58...|25006|26000|42P05)$/;

/** Whether an error means that the database is unavailable for now, and not that it refused the statement. */
export function isDatabaseAway(error: unknown): boolean {
	return someCause(error, (cause) => {
		const isUnanswered = [DatabaseTimeout, DatabaseBusy, AnswerLost].some((kind) => cause instanceof kind);
		if (isUnanswered || endsConnection(cause)) return true;
		const { code } = cause as { code?: unknown };
		return typeof code === "string" && SERVER_STATES.test(code);
	});
}

export function isConnectionLost(error: unknown): boolean {
	return someCause(error, endsConnection);
}

export function isOfServer(error: unknown): boolean {
	return someCause(error, (cause) => "severity" in cause);
}

/**
 * Whether an established connection broke before the answer: the statement may have been carried out. A refused
 * connection has carried out nothing.
 */
export function isConnectionCut(error: unknown): boolean {
	return CUT_CODES.has((error as { code?: unknown }).code);
}

/** The error of a client that is used after its end. */
export function connectionEnded(): Error {
	return Object.assign(new Error("the database client has ended"), { code: "CONNECTION_ENDED" });
}

/** A server's FATAL is its last message on a connection, or its first where it refuses one. */
function endsConnection(error: Error): boolean {
	const { code, severity } = error as { code?: unknown; severity?: unknown };
	return severity === "FATAL" || severity === "PANIC" || (typeof code === "string" && CONNECTION_CODES.has(code));
}

/** Whether an error, or one of its causes, fits. */
export function someCause(error: unknown, is: (cause: Error) => boolean): boolean {
	let cause = error;
	for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
		if (is(cause)) return true;
		cause = cause.cause;
	}
	return false;
}

/** The row of a statement that always returns one. Without it the outcome is unknown: error `AnswerLost`. */
export function onlyRow<Row>(rows: readonly Row[]): Row {
	const [row] = rows;
	if (rows.length !== 1 || row === undefined)
		throw new AnswerLost(`the database gave ${rows.length} rows where a statement gives one`);
	return row;
}
