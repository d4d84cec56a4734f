/**
 * The fields of an error that may be logged, without values of a failed statement. The query builder puts values into
 * its message, PostgreSQL into detail, context and the quoted parts of its message.
 */
export interface ErrorRecord {
	readonly name: string;
	readonly message: string;
	/** The private text of a Fault. */
	readonly detail?: string;
	/** Names of schema objects in a database error. */
	readonly about?: Readonly<Record<string, string>>;
	/** The error that the query builder's error wraps. */
	readonly cause?: ErrorRecord;
	/** The stack without its first lines, which repeat the message. */
	readonly stack: string;
}

/** Fields of a database error that name schema objects or positions in the server's source. */
const ABOUT = ["schema_name", "table_name", "column_name", "data_type_name", "constraint_name", "routine"] as const;
const CAUSES_MAX = 3;
/** Pattern of a SQLSTATE code: five characters (PostgreSQL, appendix A). */
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** Codes that SQL functions raise, whose texts may contain values. */
const RAISED = /^(P0|TG)/;
const QUERY_TEXT = /Failed query:[\s\S]*$/;
const QUOTED = /["'„“”‘’‚«»「][\s\S]*["'„“”‘’‚«»」]|["'„“”‘’‚«»「][\s\S]*$/;
/** Pattern of a position in a function of `db/functions`. The rest of the context may contain values. */
const PLACE = /PL\/pgSQL function [\w.]+(?:\([\w ,[\]]*\))? line \d+ at [A-Za-z ]+/;

export function errorRecord(error: Error, depth = 0): ErrorRecord {
	const { private: detail, cause } = error as { private?: unknown; cause?: unknown };
	const start = { name: error.name, message: messageOf(error) };
	const about = aboutOf(error);
	return {
		...start,
		...(typeof detail === "string" ? { detail: errorTextWithoutQuery(detail) } : {}),
		...(about === undefined ? {} : { about }),
		...(isOfQueryBuilder(error) && cause instanceof Error && depth < CAUSES_MAX
			? { cause: errorRecord(cause, depth + 1) }
			: {}),
		stack: (error.stack ?? "")
			.split("\n")
			.filter((line) => /^\s+at /.test(line))
			.join("\n"),
	};
}

/** An error as one line, for private texts and terminals. */
export function errorText(error: unknown): string {
	if (!(error instanceof Error)) return errorTextWithoutQuery(String(error));
	const { name, message, cause } = errorRecord(error);
	return cause === undefined ? `${name}: ${message}` : `${name}: ${message}: ${cause.message}`;
}

/** The text of an error without the query that the query builder adds. */
export const errorTextWithoutQuery = (text: string): string => text.replace(QUERY_TEXT, "Failed query");

function messageOf(error: Error): string {
	if (isOfQueryBuilder(error)) return "a statement failed";
	const server = serverError(error);
	if (server === undefined) return errorTextWithoutQuery(error.message);
	const { code, severity, severity_local: localSeverity } = server;
	// Values in a message can be found only in English messages; others are left out.
	const isEnglish = localSeverity === undefined || localSeverity === severity;
	if (RAISED.test(code) || !isEnglish) return `database error ${code}`;
	return `database error ${code}: ${error.message.replace(QUOTED, "…")}`;
}

function aboutOf(error: Error): Record<string, string> | undefined {
	const server = serverError(error);
	if (server === undefined) return undefined;
	const about: Record<string, string> = {};
	for (const name of ABOUT) if (typeof server[name] === "string") about[name] = server[name];
	const place = typeof server.where === "string" ? PLACE.exec(server.where)?.[0] : undefined;
	if (place !== undefined) about.place = place;
	return about;
}

function serverError(error: Error): ({ readonly code: string } & Readonly<Record<string, unknown>>) | undefined {
	const found = error as unknown as Record<string, unknown>;
	const isServers = found.name === "PostgresError" || typeof found.severity === "string";
	if (!isServers || typeof found.code !== "string" || !SQLSTATE.test(found.code)) return undefined;
	return found as { readonly code: string } & Readonly<Record<string, unknown>>;
}

function isOfQueryBuilder(error: Error): boolean {
	return ("query" in error && "params" in error) || error.message.startsWith("Failed query:");
}
