const CUT =
	"Its log says why it ended the connection; a pooler needs 12 connections to PostgreSQL for each gateway and console.";
const OPEN = "Open the way to that host and port.";
const TRUST = "Name a file with the certificate of who signed its own in NODE_EXTRA_CA_CERTS.";

/** What to do about an unusable database, by SQLSTATE or system error code. */
const REMEDIES: Readonly<Record<string, string>> = {
	ECONNREFUSED: "Start PostgreSQL, or set host and port of DATABASE_URL right.",
	ENOENT: "Start PostgreSQL, or name the folder of its socket and the port in DATABASE_URL.",
	ENOTFOUND: "Set the host of DATABASE_URL right.",
	EAI_AGAIN: "Look to this machine's name servers: they do not answer.",
	CONNECT_TIMEOUT: "Open the way to that host and port: nobody answered.",
	ETIMEDOUT: "Open the way to that host and port: nobody answered.",
	EHOSTUNREACH: OPEN,
	ENETUNREACH: OPEN,
	CONNECTION_CLOSED: CUT,
	CONNECTION_ENDED: CUT,
	ECONNRESET: CUT,
	DEPTH_ZERO_SELF_SIGNED_CERT: TRUST,
	SELF_SIGNED_CERT_IN_CHAIN: TRUST,
	UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TRUST,
	UNABLE_TO_VERIFY_LEAF_SIGNATURE: TRUST,
	CERT_HAS_EXPIRED: "Renew its certificate.",
	ERR_TLS_CERT_ALTNAME_INVALID: "Name the host in DATABASE_URL as its certificate does.",
	"28P01": "Set user and password of DATABASE_URL right (percent-encoded).",
	"28000": "Let this user in from this machine (pg_hba.conf).",
	"3D000": "Make the database: `createdb`.",
	"57P03": "Wait until it has started, or start it: its log says what it is about.",
	"53300": "Raise max_connections, or stop who holds them.",
	"25006": "Point DATABASE_URL at the primary, or set default_transaction_read_only = off for this role and database.",
	SILENT: "Look whether it hangs; a pooler needs 12 connections to PostgreSQL for each gateway and console.",
};

/**
 * If one code has several causes, the server's message tells them apart. Messages are English unless lc_messages is
 * changed.
 */
const BY_MESSAGE: readonly (readonly [code: string, message: RegExp, remedy: string])[] = [
	["28000", /no encryption/, "Let this user in from this machine (pg_hba.conf), perhaps with ?sslmode=require."],
	["28000", /^role .* is not permitted to log in/, "Let it sign in: `alter role … login`."],
	["28000", /^role .* does not exist/, "Make the role, or set the user of DATABASE_URL right."],
	["53300", /for role/, "Raise what the role may have (`alter role … connection limit`), or stop who holds them."],
	[
		"53300",
		/for database/,
		"Raise what the database may have (`alter database … connection limit`), or stop who holds them.",
	],
	["42501", /^permission denied for database/, "Let this role in: `grant connect on database … to …`."],
	[
		"42501",
		/^permission denied for (table|view|sequence|relation)/,
		"`grant all on all tables in schema … to …` and `grant usage on all sequences in schema … to …`, as their owner.",
	],
	["55000", /not currently accepting connections/, "Open it: `alter database … allow_connections true`."],
	["42704", /^unrecognized configuration parameter/, "Take it out of DATABASE_URL."],
	// A pooler uses one code for every refusal.
	["08P01", /max_client_conn/, "Raise max_client_conn of the pooler, or stop who holds them."],
	["08P01", /authentication failed|no such user/, "Set user and password right, in DATABASE_URL and in the pooler."],
	["08P01", /^database .* does not exist|no such database/, "Name the database to the pooler, or make it."],
	["ECONNRESET", /before secure TLS/, "It speaks no TLS: set ssl = on there, or take sslmode out of DATABASE_URL."],
];

/** Undefined for unknown errors. */
export function databaseRemedy(error: unknown): string | undefined {
	const { code, message } = error as { code?: unknown; message?: unknown };
	const closer = BY_MESSAGE.find(([of, pattern]) => of === code && pattern.test(String(message)));
	return closer?.[2] ?? REMEDIES[String(code)];
}
