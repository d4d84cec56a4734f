/** An environment variable: the help, the README and the environments of child processes use this table. */
export interface ConfigVariable {
	readonly name: string;
	/** Default as the help shows it; "" if there is none. */
	readonly default: string;
	readonly meaning: string;
	/** Plane whose processes get the variable; the other plane starts without it. */
	readonly plane: "gateway" | "console" | "both";
	/** True: set by the supervisor or tests, not by operators. Help and README omit it. */
	readonly isInternal: boolean;
}

/** One variable per line: name, default, plane (with `internal`), meaning. */
const TABLE = `
ROLE | all | both | planes of this process: gateway (inference), console (pages and jobs) or all (both, supervised)
PORT | 8080 | both | port to listen on; 0 for a free one
HOST | 127.0.0.1 | both | address to listen on; 0.0.0.0 in the image
DATABASE_URL | | both | address of PostgreSQL; default: an embedded one under DATA_DIR
DATA_DIR | ./.data | both | folder of journals, the embedded PostgreSQL and generated secrets; the demo uses its subfolder demo
CONFIG | tollgate.yaml if it exists | gateway | file of the catalogue: models, rates, upstreams, limits
SERVICE_NAME | service | both | name in API keys: sk_<name>_; 1 to 20 of a-z 0-9
INSTANCE_ID | generated once | both | name of this instance; 1 to 63 of A-Z a-z 0-9 . _ -
WORKERS | 1 | both | gateway processes that share the port; 1 to 64
WORKER_INDEX | | both internal | set by the parent process: number of the gateway
RUN_DIR | | both internal | set by the parent process: folder of its sockets
DEMO | | both internal | set by the parent process on the first run
DEMO_PUBLIC | | both internal | set by serve --demo-public
INTERNAL_SECRET | generated per start | both | signs requests from the console to a gateway; required, with the same value, if they are started separately
GATEWAY_URL | | console | address of a gateway for the playground, if the console is started separately
JOURNAL | process | gateway | durability of an acknowledged charge: survives process (kill -9), host (power loss) or remote (loss of the disk)
JOURNAL_KEEP_S | 3600 | gateway | seconds for which a gateway keeps journals after their charges are in the database, to send them again if a failover loses commits; 0 to 604800; at most 128 MB of a running gateway and 256 MB of ended ones
LEASE_TTL_S | 30 | both | 5 to 600; longest PostgreSQL outage without refused requests, and longest wait of a revocation for an unreachable instance
KEY_PEPPER | generated once | both | secret of the stored key digests, at least 32 bytes; required in production
CONSOLE_SECRET | generated once | console | secret of console sessions, at least 32 bytes; required in production
NODE_ENV | | both | production requires secrets and disables the demo
LOG_LEVEL | info | both | debug, info, warn or error
PUBLIC_URL | | both | public address of the console, for links in mails and sign-in
DRAIN_S | 25 | both | seconds for running requests after SIGTERM; new requests are accepted for a quarter of it, 6 s at most; 0 to 3600
TOPUP_SECOND_LOOK_USD | | console | bank transfers and credit adjustments of at least this amount in USD need two operators
PRICE_SECOND_LOOK_PERCENT | | console | prices of an account that differ from the list by at least this need two operators
RETENTION_USAGE_DAYS | 0 | console | days until settled requests are removed from the database (sums are kept); at least 35, or 0 for never
RETENTION_AUDIT_DAYS | 0 | console | days until audit entries are removed; at least 365, or 0 for never
RETENTION_REFUSAL_DAYS | 30 | console | days until refused requests are removed; 0 for never
ARCHIVE | | console | place for Parquet files of closed days, written before their requests are removed: a folder, or s3://bucket/prefix with S3_ACCESS_KEY_ID and its secret
TRANSFER_DETAILS | | console | bank details for top-ups by transfer, shown to customers; \\n begins a new line
STRIPE_SECRET_KEY | | console | secret key of Stripe; enables card top-ups
STRIPE_WEBHOOK_SECRET | | console | signing secrets of the Stripe webhook, separated by commas
STRIPE_API_BASE | | console internal | another address of the Stripe API, for tests
SMTP_URL | | console | mail server: smtp:// or smtps://
MAIL_FROM | | console | sender of mails; required with SMTP_URL
GITHUB_CLIENT_ID | | console | client id for sign-in with GitHub
GITHUB_CLIENT_SECRET | | console | client secret for sign-in with GitHub
GOOGLE_CLIENT_ID | | console | client id for sign-in with Google
GOOGLE_CLIENT_SECRET | | console | client secret for sign-in with Google
METRICS_TOKEN | | both | bearer token for /metrics; at least 16 characters
OTEL_EXPORTER_OTLP_ENDPOINT | | gateway | address of an OpenTelemetry collector over HTTP, without /v1/traces; enables tracing
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT | | gateway | full address for traces, instead of OTEL_EXPORTER_OTLP_ENDPOINT
OTEL_EXPORTER_OTLP_HEADERS | | gateway | headers of trace requests: name=value, separated by commas
OTEL_EXPORTER_OTLP_PROTOCOL | http/protobuf | gateway | protocol: http/protobuf or http/json
OTEL_TRACES_SAMPLER | traceidratio | gateway | sampler, by its name in OpenTelemetry
OTEL_TRACES_SAMPLER_ARG | 0.01 | gateway | share of traced requests, 0 to 1
OTEL_BSP_SCHEDULE_DELAY | 5000 | gateway internal | milliseconds between two batches of traces
OTEL_SERVICE_NAME | tollgate | gateway | service name in traces
OTEL_RESOURCE_ATTRIBUTES | | gateway | more resource attributes in traces: name=value, separated by commas
FILE_STORE | disk with an embedded Postgres, else postgres | gateway | store of encrypted batch files: disk (under DATA_DIR), postgres or s3
S3_BUCKET | | gateway | bucket for FILE_STORE=s3; object names begin with tollgate/
S3_ACCESS_KEY_ID | | both | access key of the S3-compatible service, for FILE_STORE=s3 and an ARCHIVE in a bucket
S3_SECRET_ACCESS_KEY | | both | secret key of the S3-compatible service
S3_ENDPOINT | | both | address of the S3-compatible service; default: Amazon S3
S3_REGION | | both | region of the S3-compatible service
TRUSTED_PROXIES | | both | addresses and networks of trusted proxies (x-forwarded-for), separated by commas
`;

/** Every variable that the service reads. A variable with an empty value counts as unset. */
export const CONFIG_TABLE: readonly ConfigVariable[] = Object.freeze(TABLE.trim().split("\n").map(variableOf));

function variableOf(line: string): ConfigVariable {
	const [name = "", otherwise = "", plane = "", meaning = ""] = line.split("|").map((cell) => cell.trim());
	const [own, internal] = plane.split(" ") as [ConfigVariable["plane"], string?];
	return { name, default: otherwise, meaning, plane: own, isInternal: internal !== undefined };
}

/** The variables that the help and the README show. */
export const PUBLIC_VARIABLES = CONFIG_TABLE.filter(({ isInternal }) => !isInternal);
