/** What to do about a database that cannot be used, by SQLSTATE or the system's code. */
const REMEDIES: Readonly<Record<string, string>> = {
	ECONNREFUSED: "Start PostgreSQL, or set host and port of DATABASE_URL right.",
	ENOTFOUND: "Set the host of DATABASE_URL right.",
	CONNECT_TIMEOUT: "Open the way to that host and port: nobody answered.",
	CONNECTION_CLOSED:
		"Its log says why it ended the connection; a pooler needs 12 connections to PostgreSQL for each gateway and console.",
	"28P01": "Set user and password of DATABASE_URL right (percent-encoded).",
	"28000": "Let this user in from this machine (pg_hba.conf), perhaps with ?sslmode=require.",
	"3D000": "Make the database: `createdb`.",
	"57P03": "Wait until it has started, or start it: its log says what it is about.",
	"53300": "Raise max_connections, or stop who holds them.",
	SILENT: "Look whether it hangs; a pooler needs 12 connections to PostgreSQL for each gateway and console.",
};

/** Undefined for what nobody has foreseen. */
export function databaseRemedy(error: unknown): string | undefined {
	return REMEDIES[String((error as { code?: unknown }).code)];
}
