/** The server did not answer in time: the statement may or may not have taken effect. */
export class DatabaseTimeout extends Error {
	override readonly name = "DatabaseTimeout" as const;
}

/** The statement had no effect: too many callers wait for a connection, or a row stayed locked. */
export class DatabaseBusy extends Error {
	override readonly name = "DatabaseBusy" as const;
}

/** The reply lacks the expected row. The statement may or may not have taken effect. */
export class AnswerLost extends Error {
	override readonly name = "AnswerLost" as const;
}

/** The address leads to a superseded server or to a standby. The statement was not sent. */
export class WrongServer extends Error {
	override readonly name = "WrongServer" as const;
}

/** Creates the error for a connection that was accepted but not answered. */
export function noResponseError(): Error {
	const message =
		"it takes connections and does not answer: it hangs, or a pooler before it is paused or has none free";
	return Object.assign(new Error(message), { code: "SILENT" });
}

/** Levels of `cause` that are searched: the query builder wraps the driver's errors. */
const CAUSES_MAX = 5;

/** Error codes of the driver and the system for a connection that could not be opened, or that broke. */
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

/** Those of CONNECTION_CODES that only a connection that was open can have. */
const CUT_CODES: ReadonlySet<unknown> = new Set([
	"CONNECTION_CLOSED",
	"CONNECTION_DESTROYED",
	"ECONNRESET",
	"EPIPE",
	"ETIMEDOUT",
]);

/**
 * SQLSTATE codes (PostgreSQL, appendix A) of failures that are not the statement's fault:
 * - 08: connection; 53: resources; 58: system error of the server.
 * - 57P01 to 57P05: the server starts, stops or closes connections.
 * - 25006: the server is a read-only standby, as during a switch-over.
 * - 26000, 42P05: prepared statements are missing or another session's, because a pooler shares sessions.
 */
const SERVER_STATES = /^(08...|53...|57P0[1-5]|58...|25006|26000|42P05)$/;

/** True if the error means that the database is unavailable for now; false if the database refused the statement. */
export function isDatabaseDown(error: unknown): boolean {
	return hasCause(error, (cause) => {
		const isUnanswered = [DatabaseTimeout, DatabaseBusy, AnswerLost, WrongServer].some((kind) => cause instanceof kind);
		if (isUnanswered || endsConnection(cause)) return true;
		const { code } = cause as { code?: unknown };
		return typeof code === "string" && SERVER_STATES.test(code);
	});
}

export const isConnectionLost = (error: unknown): boolean => hasCause(error, endsConnection);

export function isServerError(error: unknown): boolean {
	return hasCause(error, (cause) => "severity" in cause);
}

/** True if an open connection broke, so that the statement may have taken effect. */
export function isConnectionCut(error: unknown): boolean {
	return CUT_CODES.has((error as { code?: unknown }).code);
}

/** Creates the error for a client that is used after its end. */
export function connectionEndedError(): Error {
	return Object.assign(new Error("the database client has ended"), { code: "CONNECTION_ENDED" });
}

/** True if the server closes the connection after this error: its severity is FATAL. */
function endsConnection(error: Error): boolean {
	const { code, severity } = error as { code?: unknown; severity?: unknown };
	return severity === "FATAL" || severity === "PANIC" || (typeof code === "string" && CONNECTION_CODES.has(code));
}

/** True if `is` accepts the error or one of its causes. */
export function hasCause(error: unknown, is: (cause: Error) => boolean): boolean {
	let cause = error;
	for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
		if (is(cause)) return true;
		cause = cause.cause;
	}
	return false;
}

/** The row of a statement that always returns one. Throws `AnswerLost` without a row: the outcome is unknown. */
export function onlyRow<Row>(rows: readonly Row[]): Row {
	const [row] = rows;
	if (rows.length !== 1 || row === undefined)
		throw new AnswerLost(`the database gave ${rows.length} rows where a statement gives one`);
	return row;
}
