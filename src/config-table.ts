/** Every environment variable, for `tollgate help`, the README and the children's environments. */
export interface ConfigVariable {
	readonly name: string;
	/** The default in the help; "" if there is none. */
	readonly default: string;
	readonly meaning: string;
	/** The only plane that uses the variable; the other's processes start without it. */
	readonly plane: "gateway" | "console" | "both";
	/** Set by the supervisor or by tests, never by an operator: left out of the help and the README. */
	readonly isInternal?: true;
}

const variable = (
	name: string,
	default_: string,
	meaning: string,
	plane: ConfigVariable["plane"] = "both",
): ConfigVariable => ({ name, default: default_, meaning, plane });

const ofConsole = (name: string, default_: string, meaning: string) => variable(name, default_, meaning, "console");
const ofGateway = (name: string, default_: string, meaning: string) => variable(name, default_, meaning, "gateway");

/** Every variable that the service reads. An empty value counts as not set. */
export const CONFIG_TABLE: readonly ConfigVariable[] = Object.freeze([
	variable(
		"ROLE",
		"all",
		"what this process does: gateway (inference), console (people and jobs), all (both, supervised)",
	),
	variable("PORT", "8080", "port to listen on; 0 takes a free one"),
	variable("HOST", "127.0.0.1", "address to listen on; the image sets 0.0.0.0"),
	variable("DATABASE_URL", "", "Postgres; without it an embedded one runs under DATA_DIR"),
	variable(
		"DATA_DIR",
		"./.data",
		"journals, embedded Postgres and secrets made on the first run; the demo has a folder demo in it",
	),
	ofGateway("CONFIG", "tollgate.yaml if it exists", "the catalogue: models, rates, upstreams, limits"),
	variable("SERVICE_NAME", "service", "stands in the middle of API keys: sk_<name>_; 1 to 20 of a-z 0-9"),
	variable("INSTANCE_ID", "made once", "this machine's name among the instances; 1 to 63 of A-Z a-z 0-9 . _ -"),
	variable("WORKERS", "1", "gateway processes that share the port; 1 to 64"),
	{ ...variable("WORKER_INDEX", "", "set by the supervising process for each of its gateways"), isInternal: true },
	{
		...variable("RUN_DIR", "", "set by the supervising process: where its processes have their sockets"),
		isInternal: true,
	},
	{ ...variable("DEMO", "", "set by the supervising process on the first run"), isInternal: true },
	variable(
		"INTERNAL_SECRET",
		"made for each run",
		"signs what a console asks of a gateway; needed, the same in both, only where they are started apart",
	),
	ofConsole("GATEWAY_URL", "", "a gateway's address for a console that is started apart, for the playground's chats"),
	ofGateway(
		"JOURNAL",
		"process",
		"what an acknowledged charge survives: process (kill -9), host (power loss), remote (loss of the disk)",
	),
	variable(
		"LEASE_TTL_S",
		"30",
		"5 to 600; the longest Postgres outage that traffic survives, and the longest a revoke can take when an instance is cut off",
	),
	variable("KEY_PEPPER", "made once", "secret of the stored key digests, 32 bytes or more; required in production"),
	ofConsole(
		"CONSOLE_SECRET",
		"made once",
		"secret of the console's sessions, 32 bytes or more; required in production",
	),
	variable("NODE_ENV", "", "production makes secrets required and switches the demo off"),
	variable("LOG_LEVEL", "info", "debug, info, warn or error"),
	variable("PUBLIC_URL", "", "address under which people reach the console, for links in mails and sign-in"),
	variable(
		"DRAIN_S",
		"25",
		"how long open requests may go on after SIGTERM, and for its first quarter, 6 s at most, new ones too; 0 to 3600",
	),
	ofConsole("TOPUP_SECOND_LOOK_USD", "", "transfers from this amount on are confirmed by two operators"),
	ofConsole(
		"RETENTION_USAGE_DAYS",
		"0",
		"days after which settled requests are removed from the database, their sums never; 35 or more, 0 for never",
	),
	ofConsole("RETENTION_AUDIT_DAYS", "0", "days after which acts of people are removed; 365 or more, 0 for never"),
	ofConsole("RETENTION_REFUSAL_DAYS", "30", "days after which refused requests are removed; 0 for never"),
	ofConsole(
		"ARCHIVE",
		"",
		"where closed days are written as Parquet files, before their requests are removed: a folder, or s3://bucket/prefix with S3_ACCESS_KEY_ID and its secret",
	),
	ofConsole("TRANSFER_DETAILS", "", "bank details for top-ups by transfer, shown to customers; \\n begins a new line"),
	ofConsole("STRIPE_SECRET_KEY", "", "switches card top-ups on"),
	ofConsole("STRIPE_WEBHOOK_SECRET", "", "signing secrets of Stripe's webhook, separated by commas"),
	{ ...ofConsole("STRIPE_API_BASE", "", "another address of Stripe's interface, for tests"), isInternal: true },
	ofConsole("SMTP_URL", "", "mail server: smtp:// or smtps://"),
	ofConsole("MAIL_FROM", "", "sender of mails; required with SMTP_URL"),
	ofConsole("GITHUB_CLIENT_ID", "", "sign-in with GitHub, together with its secret"),
	ofConsole("GITHUB_CLIENT_SECRET", "", ""),
	ofConsole("GOOGLE_CLIENT_ID", "", "sign-in with Google, together with its secret"),
	ofConsole("GOOGLE_CLIENT_SECRET", "", ""),
	variable("METRICS_TOKEN", "", "bearer token that /metrics asks for; 16 characters or more"),
	ofGateway(
		"OTEL_EXPORTER_OTLP_ENDPOINT",
		"",
		"where traces go, over HTTP: a collector's address, without /v1/traces; without it nothing is traced",
	),
	ofGateway("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "the same, whole"),
	ofGateway("OTEL_EXPORTER_OTLP_HEADERS", "", "sent along: name=value, separated by commas"),
	ofGateway("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "or http/json"),
	ofGateway("OTEL_TRACES_SAMPLER", "traceidratio", "which requests are traced, by OpenTelemetry's names"),
	ofGateway("OTEL_TRACES_SAMPLER_ARG", "0.01", "the share of them, 0 to 1"),
	{ ...ofGateway("OTEL_BSP_SCHEDULE_DELAY", "5000", "milliseconds between two batches of them"), isInternal: true },
	ofGateway("OTEL_SERVICE_NAME", "tollgate", "what the service is called in a trace"),
	ofGateway("OTEL_RESOURCE_ATTRIBUTES", "", "more that describes it: name=value, separated by commas"),
	ofGateway(
		"FILE_STORE",
		"disk beside an embedded Postgres, else postgres",
		"where files of batches lie, encrypted: disk (under DATA_DIR), postgres or s3",
	),
	ofGateway("S3_BUCKET", "", "bucket for FILE_STORE=s3; objects begin with tollgate/"),
	variable("S3_ACCESS_KEY_ID", "", "key of an S3-compatible service, for FILE_STORE=s3 and for an ARCHIVE in a bucket"),
	variable("S3_SECRET_ACCESS_KEY", "", ""),
	variable("S3_ENDPOINT", "", "its address; default: Amazon's"),
	variable("S3_REGION", "", "its region"),
	variable("TRUSTED_PROXIES", "", "addresses and networks whose x-forwarded-for is believed, separated by commas"),
]);

/** The variables of the help and the README. */
export const PUBLIC_VARIABLES = CONFIG_TABLE.filter(({ isInternal }) => isInternal !== true);
