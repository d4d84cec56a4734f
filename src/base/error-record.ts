/**
 * What of an error may be written down. A database's errors carry the values of the statement that failed: the query
 * builder's in its text, the server's in detail, context and between the quotes of its message. None of them gets out.
 */
export interface ErrorRecord {
	readonly name: string;
	readonly message: string;
	/** A Fault's private text. */
	readonly detail?: string;
	/** Of a server's error: what it is about, by names of the schema alone. */
	readonly about?: Readonly<Record<string, string>>;
	/** What a query builder's error stands for. */
	readonly cause?: ErrorRecord;
	/** Lines that name places, without the message that they repeat. */
	readonly stack: string;
}

/** Names of the schema and places of the server's source, as the driver calls them. */
const ABOUT = ["schema_name", "table_name", "column_name", "data_type_name", "constraint_name", "routine"] as const;
const CAUSES_MAX = 3;
/** PostgreSQL, "Error Codes": five signs. */
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** What our own functions and others raise, with whatever they put into the text. */
const RAISED = /^(P0|TG)/;
const QUERY_TEXT = /Failed query:[\s\S]*$/;
const QUOTED = /["'„“”‘’‚«»「][\s\S]*["'„“”‘’‚«»」]|["'„“”‘’‚«»「][\s\S]*$/;
/** Where in a function of ours it was, out of a context that may show values beside it. */
const PLACE = /PL\/pgSQL function [\w.]+(?:\([\w ,[\]]*\))? line \d+ at [A-Za-z ]+/;

export function errorRecord(error: Error, depth = 0): ErrorRecord {
	const { private: detail, cause } = error as { private?: unknown; cause?: unknown };
	const start = { name: error.name, message: messageOf(error) };
	const about = aboutOf(error);
	return {
		...start,
		...(typeof detail === "string" ? { detail: withoutQuery(detail) } : {}),
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

/** An error in one line, for private texts and terminals. */
export function errorText(error: unknown): string {
	if (!(error instanceof Error)) return withoutQuery(String(error));
	const { name, message, cause } = errorRecord(error);
	return cause === undefined ? `${name}: ${message}` : `${name}: ${message}: ${cause.message}`;
}

/** Text that a query builder's error was put into, up to there. */
export function withoutQuery(text: string): string {
	return text.replace(QUERY_TEXT, "Failed query");
}

function messageOf(error: Error): string {
	if (isOfQueryBuilder(error)) return "a statement failed";
	const server = serverError(error);
	if (server === undefined) return withoutQuery(error.message);
	const { code, severity, severity_local: localSeverity } = server;
	// A message in another language may show values in ways that are not known here.
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
