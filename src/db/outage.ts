/** The answer did not come in time: the statement may or may not have been carried out. */
export class DatabaseTimeout extends Error {
	override readonly name = "DatabaseTimeout" as const;
}

/** Nothing was carried out: too many statements wait for a connection, or somebody held a row until the deadline. */
export class DatabaseBusy extends Error {
	override readonly name = "DatabaseBusy" as const;
}

/** The answer was none that the statement has: it may or may not have been carried out. */
export class AnswerLost extends Error {
	override readonly name = "AnswerLost" as const;
}

/** How far down the chain of causes it is looked for: the query builder wraps what the driver threw. */
const CAUSES_MAX = 5;

/** Of the driver and of the operating system: the connection could not be made, or broke. */
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

/** Those of them that only one can have which was there. */
const CUT_CODES: ReadonlySet<unknown> = new Set([
	"CONNECTION_CLOSED",
	"CONNECTION_DESTROYED",
	"ECONNRESET",
	"EPIPE",
	"ETIMEDOUT",
]);

/**
 * SQLSTATE classes and codes (PostgreSQL, appendix A) that say nothing about the statement: connection exceptions (08),
 * too few resources (53), the server is starting, stopping or was told to end the connection (57P01 to 57P05), an error
 * of its system or its files (58), a standby that only reads (25006), as seen in the middle of a switch-over, and a session that
 * is not ours any more, in which the names of prepared statements are lost or another's (26000, 42P05): a pooler was told to
 * hand sessions around while we run.
 */
const SERVER_STATES = /^(08...|53...|57P0[1-5]|58...|25006|26000|42P05)$/;

/** Whether an error means that the database is away for now, and not that it refused what it was asked. */
export function isDatabaseAway(error: unknown): boolean {
	return someCause(error, (cause) => {
		const isUnanswered = [DatabaseTimeout, DatabaseBusy, AnswerLost].some((kind) => cause instanceof kind);
		if (isUnanswered || endsConnection(cause)) return true;
		const { code } = cause as { code?: unknown };
		return typeof code === "string" && SERVER_STATES.test(code);
	});
}

/** Whether an error ended the connection that it came from. */
export function isConnectionLost(error: unknown): boolean {
	return someCause(error, endsConnection);
}

/** Whether the server itself said it. */
export function isOfServer(error: unknown): boolean {
	return someCause(error, (cause) => "severity" in cause);
}

/** Whether a connection that was there broke before the answer: what was asked may have been done. One that is refused has done nothing. */
export function isConnectionCut(error: unknown): boolean {
	return CUT_CODES.has((error as { code?: unknown }).code);
}

/** What a client of ours is that is used behind its end. */
export function connectionEnded(): Error {
	return Object.assign(new Error("the database client has ended"), { code: "CONNECTION_ENDED" });
}

/** FATAL is what the server says last on a connection, or first where it lets nobody in. */
function endsConnection(error: Error): boolean {
	const { code, severity } = error as { code?: unknown; severity?: unknown };
	return severity === "FATAL" || severity === "PANIC" || (typeof code === "string" && CONNECTION_CODES.has(code));
}

/** Whether an error, or what it was thrown for, is so. */
export function someCause(error: unknown, is: (cause: Error) => boolean): boolean {
	let cause = error;
	for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
		if (is(cause)) return true;
		cause = cause.cause;
	}
	return false;
}
