/** Every environment variable, for `tollgate help`, the README and the children's environments. */
export interface ConfigVariable {
	readonly name: string;
	/** The default in the help; "" if there is none. */
	readonly default: string;
	readonly meaning: string;
	/** The only plane that uses the variable; the other's processes start without it. */
	readonly plane: "gateway" | "console" | "both";
	/** Set by the supervisor or by tests, never by an operator: left out of the help and the README. */
	readonly isInternal: boolean;
}

/** One variable a line: name, default, plane (with `internal` if it is), meaning. */
const TABLE = `
ROLE | all | both | what this process does: gateway (inference), console (people and jobs), all (both, supervised)
PORT | 8080 | both | port to listen on; 0 takes a free one
HOST | 127.0.0.1 | both | address to listen on; the image sets 0.0.0.0
DATABASE_URL | | both | Postgres; without it an embedded one runs under DATA_DIR
DATA_DIR | ./.data | both | journals, embedded Postgres and secrets made on the first run; the demo has a folder demo in it
CONFIG | tollgate.yaml if it exists | gateway | the catalogue: models, rates, upstreams, limits
SERVICE_NAME | service | both | the middle of API keys: sk_<name>_; 1 to 20 of a-z 0-9
INSTANCE_ID | made once | both | this machine's name among the instances; 1 to 63 of A-Z a-z 0-9 . _ -
WORKERS | 1 | both | gateway processes that share the port; 1 to 64
WORKER_INDEX | | both internal | set by the supervising process for each of its gateways
RUN_DIR | | both internal | set by the supervising process: where its processes have their sockets
DEMO | | both internal | set by the supervising process on the first run
INTERNAL_SECRET | made for each run | both | signs what a console asks of a gateway; needed, the same in both, only where they are started apart
GATEWAY_URL | | console | a gateway's address for a console that is started apart, for the playground's chats
JOURNAL | process | gateway | what an acknowledged charge survives: process (kill -9), host (power loss), remote (loss of the disk)
LEASE_TTL_S | 30 | both | 5 to 600; the longest Postgres outage that traffic survives, and the longest a revoke can take when an instance is cut off
KEY_PEPPER | made once | both | secret of the stored key digests, 32 bytes or more; required in production
CONSOLE_SECRET | made once | console | secret of the console's sessions, 32 bytes or more; required in production
NODE_ENV | | both | production makes secrets required and switches the demo off
LOG_LEVEL | info | both | debug, info, warn or error
PUBLIC_URL | | both | address under which people reach the console, for links in mails and sign-in
DRAIN_S | 25 | both | how long open requests may go on after SIGTERM, and for its first quarter, 6 s at most, new ones too; 0 to 3600
TOPUP_SECOND_LOOK_USD | | console | transfers from this amount on are confirmed by two operators
RETENTION_USAGE_DAYS | 0 | console | days after which settled requests are removed from the database, their sums never; 35 or more, 0 for never
RETENTION_AUDIT_DAYS | 0 | console | days after which acts of people are removed; 365 or more, 0 for never
RETENTION_REFUSAL_DAYS | 30 | console | days after which refused requests are removed; 0 for never
ARCHIVE | | console | where closed days are written as Parquet files, before their requests are removed: a folder, or s3://bucket/prefix with S3_ACCESS_KEY_ID and its secret
TRANSFER_DETAILS | | console | bank details for top-ups by transfer, shown to customers; \\n begins a new line
STRIPE_SECRET_KEY | | console | switches card top-ups on
STRIPE_WEBHOOK_SECRET | | console | signing secrets of Stripe's webhook, separated by commas
STRIPE_API_BASE | | console internal | another address of Stripe's interface, for tests
SMTP_URL | | console | mail server: smtp:// or smtps://
MAIL_FROM | | console | sender of mails; required with SMTP_URL
GITHUB_CLIENT_ID | | console | sign-in with GitHub, together with its secret
GITHUB_CLIENT_SECRET | | console |
GOOGLE_CLIENT_ID | | console | sign-in with Google, together with its secret
GOOGLE_CLIENT_SECRET | | console |
METRICS_TOKEN | | both | bearer token that /metrics asks for; 16 characters or more
OTEL_EXPORTER_OTLP_ENDPOINT | | gateway | where traces go, over HTTP: a collector's address, without /v1/traces; without it nothing is traced
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT | | gateway | the same, whole
OTEL_EXPORTER_OTLP_HEADERS | | gateway | sent along: name=value, separated by commas
OTEL_EXPORTER_OTLP_PROTOCOL | http/protobuf | gateway | or http/json
OTEL_TRACES_SAMPLER | traceidratio | gateway | which requests are traced, by OpenTelemetry's names
OTEL_TRACES_SAMPLER_ARG | 0.01 | gateway | the share of them, 0 to 1
OTEL_BSP_SCHEDULE_DELAY | 5000 | gateway internal | milliseconds between two batches of them
OTEL_SERVICE_NAME | tollgate | gateway | what the service is called in a trace
OTEL_RESOURCE_ATTRIBUTES | | gateway | more that describes it: name=value, separated by commas
FILE_STORE | disk with an embedded Postgres, else postgres | gateway | store of batch files, encrypted: disk (under DATA_DIR), postgres or s3
S3_BUCKET | | gateway | bucket for FILE_STORE=s3; objects begin with tollgate/
S3_ACCESS_KEY_ID | | both | key of an S3-compatible service, for FILE_STORE=s3 and for an ARCHIVE in a bucket
S3_SECRET_ACCESS_KEY | | both |
S3_ENDPOINT | | both | its address; default: Amazon's
S3_REGION | | both | its region
TRUSTED_PROXIES | | both | addresses and networks whose x-forwarded-for is believed, separated by commas
`;

/** Every variable that the service reads. An empty value counts as not set. */
export const CONFIG_TABLE: readonly ConfigVariable[] = Object.freeze(TABLE.trim().split("\n").map(variableOf));

function variableOf(line: string): ConfigVariable {
	const [name = "", otherwise = "", plane = "", meaning = ""] = line.split("|").map((cell) => cell.trim());
	const [own, internal] = plane.split(" ") as [ConfigVariable["plane"], string?];
	return { name, default: otherwise, meaning, plane: own, isInternal: internal !== undefined };
}

/** The variables of the help and the README. */
export const PUBLIC_VARIABLES = CONFIG_TABLE.filter(({ isInternal }) => !isInternal);
