/**
 * The only code that reads the process's environment. Reads everything once, reports all problems together, and freezes
 * the result. Reads `NODE_ENV` through an object: in the binary the bundler replaces the expression
 * `process.env.NODE_ENV` by a constant.
 */
import { statSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { createEnvironmentReader, type Environment, type EnvironmentReader } from "./base/environment-reader.ts";
import { environmentWarnings } from "./base/environment-warnings.ts";
import { readMail, readSignIn, readStripe, readTransferDetails, withoutSlash } from "./config-sections.ts";
import { CONFIG_TABLE } from "./config-table.ts";
import { addressProblem } from "./db/address.ts";
import { readS3Account } from "./files/bucket.ts";
import { readRetention } from "./ledger/retention.ts";
import { parseDecimal } from "./money/decimal.ts";
import { type NanoUsd, parseUsd } from "./money/nano-usd.ts";
import { readTraceSettings } from "./traces/traces.ts";

export type Config = Readonly<ReturnType<typeof readAll>>;

/** Error for an invalid environment; its message lists all problems. */
export class ConfigError extends Error {
	override readonly name = "ConfigError" as const;
	readonly problems: readonly string[];

	constructor(problems: readonly string[]) {
		super(
			`the configuration has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:\n  ${problems.join("\n  ")}`,
		);
		this.problems = problems;
	}
}

const FILE_STORES = ["disk", "postgres", "s3"] as const;
/** Roles of a process: a gateway, a console, or the supervisor of both (`all`). */
const ROLES = ["all", "gateway", "console"] as const;
const SECRET_BYTES_MIN = 32;
const METRICS_TOKEN_LENGTH_MIN = 16;
const DEFAULT_CONFIG_FILE = "tollgate.yaml";
/** Variables of earlier versions, with the fixed value that each now has. */
const FORMER_VARIABLES: Readonly<Record<string, string>> = {
	BOOKS_VERIFY_ROWS_S: "500 rows of closed days are read again in a second",
	RETENTION_LEASE_DAYS: "it is 90 days",
	RETENTION_CONTROL_DAYS: "it is 30 days",
};
/** Must be a valid folder name: the folder of the instance's journals has this name. */
const INSTANCE_ID = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,63}$/;

/** Reads the configuration. @throws ConfigError with all problems; its message never contains a secret. */
export function loadConfig(given: Environment = process.env, cwd: string = process.cwd()): Config {
	const problems: string[] = [];
	const env = given.ROLE === "gateway" ? withoutConsoleVariables(given) : given;
	const config = readAll(env, cwd, problems);
	problems.push(...findContradictions(config));
	if (config.production) problems.push(...findProductionProblems(config));
	if (problems.length > 0) throw new ConfigError(problems);
	return Object.freeze({ ...config, warnings: Object.freeze(findWarnings(config, given)) });
}

function readAll(env: Environment, cwd: string, problems: string[]) {
	const note = (problem: string) => void problems.push(problem);
	const read = createEnvironmentReader(env, note);
	const production = env.NODE_ENV === "production";
	const databaseUrl = read.url("DATABASE_URL", ["postgres:", "postgresql:"]);
	const configPath = findConfigFile(read, cwd, problems);
	const role = read.choice("ROLE", ROLES);
	const runDir = read.text("RUN_DIR");
	const s3 = readS3Account(read, note);
	const bucket = read.text("S3_BUCKET");
	const demo = !production && (runDir === null ? role === "all" && isFirstRun(read, configPath) : read.isSet("DEMO"));
	return {
		role,
		port: read.integer("PORT", 8080, 0, 65_535),
		host: read.pattern("HOST", /^[A-Za-z0-9.:_-]{1,255}$/, "must be a host name or an address") ?? "127.0.0.1",
		/** Null: the embedded Postgres in `dataDir`. */
		databaseUrl,
		/** Absolute path. The demo uses its own subfolder, so that play money and real credit never mix. */
		dataDir: resolve(cwd, read.text("DATA_DIR") ?? "./.data", ...(demo ? ["demo"] : [])),
		/** Absolute path of the catalogue file, which existed when it was checked; null without a catalogue. */
		configPath,
		serviceName: read.pattern("SERVICE_NAME", /^[a-z0-9]{1,20}$/, "must be 1 to 20 of a-z 0-9") ?? "service",
		/** Null: an id is generated and stored in `dataDir`. */
		instanceId: read.pattern("INSTANCE_ID", INSTANCE_ID, "must be 1 to 63 of A-Z a-z 0-9 . _ -, not . or .. alone"),
		workers: read.integer("WORKERS", 1, 1, 64),
		/** Number of this worker process; null in other processes. */
		workerIndex: read.text("WORKER_INDEX") === null ? null : read.integer("WORKER_INDEX", 1, 1, 64),
		/** Folder of the sockets between the processes; null without a supervisor. */
		runDir,
		/** Signs requests that the console sends to a gateway for a key. Null: gateways refuse such requests. */
		internalSecret: read.text("INTERNAL_SECRET"),
		/** URL of a gateway, without a final slash, for a console that runs without a supervisor. */
		gatewayUrl: withoutSlash(read.url("GATEWAY_URL", ["http:", "https:"])),
		journal: read.choice("JOURNAL", ["process", "host", "remote"]),
		journalKeepMs: read.integer("JOURNAL_KEEP_S", 3_600, 0, 604_800) * 1000,
		leaseTtlMs: read.integer("LEASE_TTL_S", 30, 5, 600) * 1000,
		retention: readRetention(read, note, { cwd, s3 }),
		/** Null only outside production: then a pepper is generated and stored in `dataDir`. */
		keyPepper: read.text("KEY_PEPPER"),
		consoleSecret: read.text("CONSOLE_SECRET"),
		production,
		/** True for the demo: neither a database nor a catalogue is configured. Always false in production. */
		demo,
		logLevel: read.choice("LOG_LEVEL", ["info", "debug", "warn", "error"]),
		/** Origin under which customers reach the service, without a final slash. */
		publicUrl: withoutSlash(read.url("PUBLIC_URL", ["http:", "https:"], true)),
		drainMs: read.integer("DRAIN_S", 25, 0, 3600) * 1000,
		/** Amount from which top-ups and adjustments need two operators; null: one operator suffices. */
		topUpSecondLook: amountOf(read.text("TOPUP_SECOND_LOOK_USD"), problems),
		/** Hundredths of a percent. Prices that differ so much from the list need two operators. */
		priceSecondLook: percentOf(read.text("PRICE_SECOND_LOOK_PERCENT"), problems),
		/** Bank details for transfers, one per line. Null: operators send them to customers. */
		transferDetails: readTransferDetails(read, note),
		/** Null: card payments are off. */
		stripe: readStripe(read),
		/** Null: no mails are sent. */
		mail: readMail(read, note),
		signIn: readSignIn(read, note),
		metricsToken: read.text("METRICS_TOKEN"),
		/** Null: tracing is off. */
		traces: readTraceSettings(read, note),
		/** Where new files are stored. */
		fileStore: read.isSet("FILE_STORE")
			? read.choice("FILE_STORE", FILE_STORES)
			: databaseUrl === null
				? "disk"
				: "postgres",
		/** Null: no bucket is configured. */
		fileS3: s3 === null || bucket === null ? null : { ...s3, bucket },
		/** Addresses and networks (`10.0.0.0/8`) of proxies whose `x-forwarded-for` is trusted. */
		trustedProxies: Object.freeze(read.list("TRUSTED_PROXIES")) as readonly string[],
		/** The whole environment, for `${NAME}` in the catalogue. Contains secrets, so it must never be logged. */
		env: Object.freeze({ ...env }) as Environment,
		/** Texts about settings that are valid but risky; they are logged. */
		warnings: [] as readonly string[],
	};
}

/** Returns the unchecked environment, for commands that work without a complete configuration. */
export function processEnvironment(): Environment {
	return process.env;
}

/** Returns problems of settings that contradict each other, in production or not. */
function findContradictions(config: Config): string[] {
	const problems: string[] = [];
	if (config.demo && config.runDir === null && !isOwnMachine(config.host) && !config.env.DEMO_PUBLIC)
		problems.push(
			`HOST=${config.host} lets other machines into the demo, which has no passwords: set CONFIG or DATABASE_URL, or use \`serve --demo-public\``,
		);
	const place = config.databaseUrl === null ? undefined : addressProblem(config.databaseUrl);
	if (place !== undefined) problems.push(`DATABASE_URL ${place}`);
	if (config.metricsToken !== null && config.metricsToken.length < METRICS_TOKEN_LENGTH_MIN) {
		problems.push(`METRICS_TOKEN must have ${METRICS_TOKEN_LENGTH_MIN} characters or more`);
	}
	if (config.internalSecret !== null && Buffer.byteLength(config.internalSecret) < SECRET_BYTES_MIN) {
		problems.push(`INTERNAL_SECRET must have ${SECRET_BYTES_MIN} bytes or more`);
	}
	if (config.gatewayUrl !== null && config.internalSecret === null)
		problems.push("INTERNAL_SECRET is required with GATEWAY_URL: the same as the gateway's");
	if (config.fileStore === "s3" && config.fileS3 === null) {
		problems.push("S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are required with FILE_STORE=s3");
	}
	for (const network of config.trustedProxies) {
		if (!isNetwork(network))
			problems.push(`TRUSTED_PROXIES: ${JSON.stringify(network)} is neither an address nor a network`);
	}
	return problems;
}

/** Returns the secrets that must be set. A gateway has no sessions, so it needs no CONSOLE_SECRET. */
function secretsOf({ role, keyPepper, consoleSecret }: Config): [name: string, secret: string | null][] {
	const pepper: [string, string | null] = ["KEY_PEPPER", keyPepper];
	return role === "gateway" ? [pepper] : [pepper, ["CONSOLE_SECRET", consoleSecret]];
}

function findProductionProblems(config: Config): string[] {
	const problems: string[] = [];
	for (const [name, secret] of secretsOf(config)) {
		if (secret === null) problems.push(`${name} is required in production. Create one with \`openssl rand -hex 32\``);
		else if (Buffer.byteLength(secret) < SECRET_BYTES_MIN)
			problems.push(`${name} must have ${SECRET_BYTES_MIN} bytes or more`);
	}
	if (config.publicUrl !== null && config.role !== "gateway" && !isSafeOrigin(config.publicUrl)) {
		problems.push(
			"PUBLIC_URL must begin with https:// in production: over http:// anyone on the network can steal sessions",
		);
	}
	if (config.env.BUN_CONFIG_VERBOSE_FETCH) {
		problems.push("BUN_CONFIG_VERBOSE_FETCH must not be set in production: it prints API keys of model servers");
	}
	if (config.stripe?.webhookSecrets.length === 0) {
		problems.push("STRIPE_WEBHOOK_SECRET is required with STRIPE_SECRET_KEY: without it no card payment is credited");
	}
	return problems;
}

/** Returns warnings to log. Empty in a supervised process, because its parent has logged them. */
function findWarnings(config: Config, given: Environment): string[] {
	const warnings: string[] = [];
	if (config.runDir !== null) return warnings;
	const { production, databaseUrl, role } = config;
	warnings.push(...environmentWarnings(given, variables));
	for (const [name, now] of Object.entries(FORMER_VARIABLES))
		if (given[name]) warnings.push(`${name} is no longer read: ${now}`);
	for (const [name, secret] of production ? [] : secretsOf(config))
		if (secret !== null && Buffer.byteLength(secret) < SECRET_BYTES_MIN)
			warnings.push(
				`${name} has less than ${SECRET_BYTES_MIN} bytes, which production refuses. Create one with \`openssl rand -hex 32\``,
			);
	if (role === "gateway") {
		const useless = consoleVariables.filter((name) => given[name]);
		if (useless.length > 0)
			warnings.push(`a gateway does not use ${useless.join(", ")}: set them for the console only`);
	}
	if (production && databaseUrl === null) {
		warnings.push(
			"DATABASE_URL is not set: all credit is kept in an embedded PostgreSQL under DATA_DIR, on this machine only",
		);
	}
	if (production && config.configPath === null && role !== "console")
		warnings.push("there is no catalogue, so no model is served: set CONFIG");
	if (!config.production && !isOwnMachine(config.host))
		warnings.push(
			`HOST=${config.host} lets other machines in, but NODE_ENV is not production: secrets are not required, and operators need no second factor`,
		);
	if (production && config.publicUrl === null && role !== "gateway")
		warnings.push("PUBLIC_URL is not set: links in mails and sign-in use the listening address");
	if (production && config.stripe !== null && config.stripe.apiBase !== null)
		warnings.push("STRIPE_API_BASE is set: payments do not use Stripe itself");
	if (!production && config.env.BUN_CONFIG_VERBOSE_FETCH)
		warnings.push("BUN_CONFIG_VERBOSE_FETCH prints API keys of model servers");
	const secretsMissing = config.keyPepper === null || (config.consoleSecret === null && role !== "gateway");
	if (!production && databaseUrl !== null && secretsMissing) {
		warnings.push(
			"KEY_PEPPER or CONSOLE_SECRET is not set: instances on other machines with this database need the same values",
		);
	}
	return warnings;
}

const variables = CONFIG_TABLE.map(({ name }) => name);
const consoleVariables = CONFIG_TABLE.filter(({ plane }) => plane === "console").map(({ name }) => name);

/** Removes the console's secrets from a gateway's environment, so that the gateway cannot leak them. */
function withoutConsoleVariables(env: Environment): Environment {
	return Object.fromEntries(Object.entries(env).filter(([name]) => !consoleVariables.includes(name)));
}

function isFirstRun(read: EnvironmentReader, configPath: string | null): boolean {
	return configPath === null && !read.isSet("DATABASE_URL", "CONFIG");
}

function findConfigFile(read: EnvironmentReader, cwd: string, problems: string[]): string | null {
	const given = read.text("CONFIG");
	const path = resolve(cwd, given ?? DEFAULT_CONFIG_FILE);
	try {
		if (statSync(path, { throwIfNoEntry: false }) !== undefined) return path;
		if (given !== null) problems.push(`CONFIG: the file ${path} does not exist`);
	} catch (error) {
		// An unreadable catalogue is an error: otherwise the service would start the demo instead.
		problems.push(`CONFIG: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
	}
	return null;
}

const isOwnMachine = (host: string): boolean => /^(127\.[\d.]+|::1|localhost)$/.test(host);

/** Plain HTTP is safe only if the URL's host is this machine. */
function isSafeOrigin(url: string): boolean {
	const { protocol, hostname } = new URL(url);
	return protocol === "https:" || hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

function amountOf(text: string | null, problems: string[]): NanoUsd | null {
	const amount = text === null ? null : parseUsd(text);
	if (amount === undefined) problems.push("TOPUP_SECOND_LOOK_USD must be an amount in dollars, such as 10000");
	return amount ?? null;
}

function percentOf(text: string | null, problems: string[]): number | null {
	const percent = text === null ? null : parseDecimal(text, 2);
	if (percent === undefined) problems.push("PRICE_SECOND_LOOK_PERCENT must be a percentage, such as 20");
	return percent ?? null;
}

/** True for an IP address, or a network such as `10.0.0.0/8`. */
function isNetwork(text: string): boolean {
	const [address = "", prefix, ...rest] = text.split("/");
	const version = isIP(address);
	if (version === 0 || rest.length > 0) return false;
	return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}
