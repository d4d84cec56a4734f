import { afterEach, beforeEach, describe, expect, mock, spyOn, test } from "bun:test";
import fs, { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { environmentWarnings } from "../src/base/environment-warnings.ts";
import { ConfigError, loadConfig } from "../src/config.ts";
import { CONFIG_TABLE } from "../src/config-table.ts";
import { loadOrCreatePepper, loadOrCreateSecrets } from "../src/secrets.ts";
import { temporaryFolder } from "./support/at-end.ts";

let cwd: string;
beforeEach(() => {
	cwd = temporaryFolder();
});
afterEach(() => void mock.restore());

const SECRET = "0123456789abcdef0123456789abcdef";
const PRODUCTION = { NODE_ENV: "production", KEY_PEPPER: SECRET, CONSOLE_SECRET: SECRET };

function problemsOf(env: Record<string, string>): readonly string[] {
	try {
		loadConfig(env, cwd);
	} catch (error) {
		if (error instanceof ConfigError) return error.problems;
		throw error;
	}
	return [];
}

describe("loadConfig", () => {
	test("returns the demo's defaults for an empty environment and directory", () => {
		const { env, ...config } = loadConfig({}, cwd);
		expect(env).toEqual({});
		expect(config).toEqual({
			role: "all",
			port: 8080,
			host: "127.0.0.1",
			databaseUrl: null,
			dataDir: join(cwd, ".data", "demo"),
			configPath: null,
			serviceName: "service",
			instanceId: null,
			workers: 1,
			workerIndex: null,
			runDir: null,
			internalSecret: null,
			gatewayUrl: null,
			journal: "process",
			journalKeepMs: 3_600_000,
			leaseTtlMs: 30_000,
			retention: { archive: null, usageDays: 0, auditDays: 0, refusalDays: 30 },
			keyPepper: null,
			consoleSecret: null,
			production: false,
			demo: true,
			logLevel: "info",
			publicUrl: null,
			drainMs: 25_000,
			topUpSecondLook: null,
			priceSecondLook: null,
			transferDetails: null,
			stripe: null,
			mail: null,
			signIn: { github: null, google: null },
			metricsToken: null,
			traces: null,
			fileStore: "disk",
			fileS3: null,
			trustedProxies: [],
			warnings: [],
		});
	});

	test("treats an empty variable as unset", () => {
		const empty = Object.fromEntries(CONFIG_TABLE.map(({ name }) => [name, ""]));
		const { env: _, ...config } = loadConfig(empty, cwd);
		const { env: __, ...defaults } = loadConfig({}, cwd);
		expect(config).toEqual(defaults);
	});

	test("returns times in milliseconds and absolute paths", () => {
		writeFileSync(join(cwd, "my.yaml"), "");
		const config = loadConfig(
			{
				PORT: "0",
				HOST: "::1",
				DATABASE_URL: "postgres:///tollgate?host=/run/postgresql",
				DATA_DIR: "here",
				CONFIG: "my.yaml",
				WORKERS: "64",
				JOURNAL: "host",
				LEASE_TTL_S: "600",
				DRAIN_S: "0",
				PUBLIC_URL: "https://ai.example/",
				STRIPE_SECRET_KEY: "sk_test_1",
				STRIPE_WEBHOOK_SECRET: "whsec_a, whsec_b",
				SMTP_URL: "smtp://u:p@mail:25",
				MAIL_FROM: "Tollgate <a@b.example>",
				TRUSTED_PROXIES: "10.0.0.0/8,::1, fd00::/8",
			},
			cwd,
		);
		expect(config).toMatchObject({
			port: 0,
			host: "::1",
			databaseUrl: "postgres:///tollgate?host=/run/postgresql",
			dataDir: join(cwd, "here"),
			configPath: join(cwd, "my.yaml"),
			demo: false,
			workers: 64,
			journal: "host",
			leaseTtlMs: 600_000,
			drainMs: 0,
			publicUrl: "https://ai.example",
			stripe: { secretKey: "sk_test_1", webhookSecrets: ["whsec_a", "whsec_b"], apiBase: null },
			trustedProxies: ["10.0.0.0/8", "::1", "fd00::/8"],
		});
	});

	test("requires https in production, except for addresses of this machine", () => {
		for (const url of [
			"http://ai.example",
			"http://10.0.0.1",
			"http://127.0.0.1.attacker.example",
			"http://localhost.example",
		])
			expect([url, problemsOf({ ...PRODUCTION, PUBLIC_URL: url }).map((problem) => problem.slice(0, 10))]).toEqual([
				url,
				["PUBLIC_URL"],
			]);
		for (const url of ["https://ai.example", "http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"])
			expect([url, problemsOf({ ...PRODUCTION, PUBLIC_URL: url })]).toEqual([url, []]);
		expect(problemsOf({ PUBLIC_URL: "http://ai.example" })).toEqual([]);
	});

	test("reads bank details with line breaks or `\\n` between lines", () => {
		const read = (value: string) => loadConfig({ TRANSFER_DETAILS: value }, cwd).transferDetails;
		expect(read("Example Bank\\nIBAN DE00 1234 \n BIC EXAMPLE\r\n")).toBe(
			"Example Bank\nIBAN DE00 1234 \n BIC EXAMPLE",
		);
		expect(read(" \\n ")).toBeNull();
		const demand = "TRANSFER_DETAILS must be plain text of at most 2000 characters without control characters";
		for (const wrong of ["a\u0000b", "a\u001b[31m", "x".repeat(2_001)])
			expect(problemsOf({ TRANSFER_DETAILS: wrong })).toEqual([demand]);
	});

	test("names the variable of a malformed URL without its credentials", () => {
		for (const name of ["DATABASE_URL", "SMTP_URL"]) {
			const scheme = name === "SMTP_URL" ? "smtp" : "postgres";
			const [problem, ...others] = problemsOf({ [name]: `${scheme}://me:hunter%2@h/x`, MAIL_FROM: "a@b.example" });
			expect(problem).toStartWith(`${name} has a %`);
			expect(others).toEqual([]);
			expect(problem).not.toContain("hunter");
		}
	});

	test("refuses an INSTANCE_ID that is a special folder name", () => {
		for (const id of [".", ".."]) expect(problemsOf({ INSTANCE_ID: id })).toHaveLength(1);
		for (const id of ["...", "one.", ".one"]) expect(loadConfig({ INSTANCE_ID: id }, cwd).instanceId).toBe(id);
	});

	test("reports all problems in one error", () => {
		const wrong = {
			PORT: "80a",
			HOST: "a b",
			DATABASE_URL: "mysql://root:hunter2@db",
			CONFIG: "absent.yaml",
			SERVICE_NAME: "Acme",
			INSTANCE_ID: "a/b",
			WORKERS: "0",
			JOURNAL: "none",
			LEASE_TTL_S: "4",
			LOG_LEVEL: "loud",
			PUBLIC_URL: "https://ai.example/path",
			DRAIN_S: "-1",
			STRIPE_API_BASE: "stripe",
			SMTP_URL: "smtp://mail",
			GITHUB_CLIENT_ID: "x",
			GOOGLE_CLIENT_SECRET: "x",
			METRICS_TOKEN: "short",
			TRUSTED_PROXIES: "10.0.0.0/33, nowhere, ::1/129, 10.0.0.1",
		};
		const problems = problemsOf(wrong);
		const named = problems.map((problem) => /^[A-Z_]+/.exec(problem)?.[0]);
		const told: Record<string, string> = { SMTP_URL: "MAIL_FROM", GOOGLE_CLIENT_SECRET: "GOOGLE_CLIENT_ID" };
		expect(new Set(named)).toEqual(new Set(Object.keys(wrong).map((name) => told[name] ?? name)));
		expect(named.filter((name) => name === "TRUSTED_PROXIES").length).toBe(3);
		expect(problems.join()).not.toContain("hunter2");
	});

	test("reads an existing default catalogue and then runs no demo", () => {
		writeFileSync(join(cwd, "tollgate.yaml"), "models: []\n");
		expect(loadConfig({}, cwd)).toMatchObject({ configPath: join(cwd, "tollgate.yaml"), demo: false });
	});

	test("runs no demo if DATABASE_URL is set", () => {
		expect(loadConfig({ DATABASE_URL: "postgres://db/x" }, cwd)).toMatchObject({ configPath: null, demo: false });
	});

	test("returns a frozen copy that later environment changes do not affect", () => {
		const env: Record<string, string> = { TRUSTED_PROXIES: "::1", A: "1" };
		const config = loadConfig(env, cwd);
		env.A = "2";
		expect(config.env.A).toBe("1");
		for (const part of [config, config.env, config.trustedProxies, config.signIn, config.warnings]) {
			expect(Object.isFrozen(part)).toBe(true);
		}
	});

	test("accepts a retention of at least 35 days, or 0 for no deletion", () => {
		for (const [days, problems] of [
			["0", 0],
			["34", 1],
			["35", 0],
		] as const)
			expect([days, problemsOf({ RETENTION_USAGE_DAYS: days }).length]).toEqual([days, problems]);
	});

	test("accepts as archive a folder or a bucket with its keys", () => {
		const keys = { S3_ACCESS_KEY_ID: "id", S3_SECRET_ACCESS_KEY: "secret" };
		const archiveOf = (env: Record<string, string>) => loadConfig(env, cwd).retention.archive;
		expect(archiveOf({ ARCHIVE: "books" })).toEqual({ folder: join(cwd, "books") });
		expect(archiveOf({ ...keys, ARCHIVE: "s3://books/a/b" })).toMatchObject({
			bucket: { bucket: "books" },
			prefix: "a/b/",
		});
		expect(archiveOf({ ...keys, ARCHIVE: "s3://books" })).toMatchObject({ bucket: { bucket: "books" }, prefix: "" });
		expect(problemsOf({ ARCHIVE: "s3://books" })).toHaveLength(1);
		expect(problemsOf({ ...keys, ARCHIVE: "s3:books" })).toHaveLength(1);
	});

	test("refuses old names of the S3 variables and gives the new names", () => {
		expect(problemsOf({ FILE_S3_BUCKET: "files", ARCHIVE_S3_SECRET_ACCESS_KEY: "x" })).toEqual([
			"ARCHIVE_S3_SECRET_ACCESS_KEY is called S3_SECRET_ACCESS_KEY now",
			"FILE_S3_BUCKET is called S3_BUCKET now",
		]);
	});

	test("warns of a removed variable and names its replacement", () => {
		const former = { BOOKS_VERIFY_ROWS_S: "100", RETENTION_LEASE_DAYS: "7", RETENTION_CONTROL_DAYS: "2" };
		expect(loadConfig(former, cwd).warnings).toEqual([
			"BOOKS_VERIFY_ROWS_S is no longer read: 500 rows of closed days are read again in a second",
			"RETENTION_LEASE_DAYS is no longer read: it is 90 days",
			"RETENTION_CONTROL_DAYS is no longer read: it is 30 days",
		]);
	});

	test("reads exactly the variables in the table, which lists each variable once", () => {
		const root = join(import.meta.dir, "..");
		const readers = [
			"src/config.ts",
			"src/config-sections.ts",
			"src/files/bucket.ts",
			"src/ledger/retention.ts",
			"src/traces/traces.ts",
		];
		const source = readers.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
		const body = source.slice(source.indexOf("export function loadConfig"));
		const pattern = /(?:read\.\w+\(|pairsOf\(read, |env\.)"?([A-Z][A-Z0-9_]+)\b/g;
		const read = [...body.matchAll(pattern)].map((match) => match[1]);
		const known = CONFIG_TABLE.map(({ name }) => name);
		expect(new Set(known).size).toBe(known.length);
		expect(new Set(read.filter((name) => !name?.startsWith("BUN_")))).toEqual(new Set(known));
	});
});

describe("production", () => {
	test("refuses missing or short secrets, without showing them", () => {
		expect(problemsOf({ NODE_ENV: "production" }).map((problem) => problem.split(" ")[0])).toEqual([
			"KEY_PEPPER",
			"CONSOLE_SECRET",
		]);
		const short = problemsOf({ ...PRODUCTION, KEY_PEPPER: "hunter2", CONSOLE_SECRET: SECRET.slice(1) });
		expect(short.length).toBe(2);
		expect(short.join()).not.toContain("hunter2");
		expect(problemsOf({ ...PRODUCTION, KEY_PEPPER: "ä".repeat(16) })).toEqual([]);
	});

	test("refuses BUN_CONFIG_VERBOSE_FETCH, which prints request headers", () => {
		expect(problemsOf({ ...PRODUCTION, BUN_CONFIG_VERBOSE_FETCH: "curl" })[0]).toContain("BUN_CONFIG_VERBOSE_FETCH");
		expect(loadConfig({ BUN_CONFIG_VERBOSE_FETCH: "1" }, cwd).warnings.length).toBe(1);
	});

	test("runs no demo and warns of an embedded database or a missing catalogue", () => {
		const config = loadConfig(PRODUCTION, cwd);
		expect(config).toMatchObject({ production: true, demo: false });
		expect(config.warnings.map((warning) => /DATABASE_URL|catalogue/.exec(warning)?.[0])).toEqual([
			"DATABASE_URL",
			"catalogue",
		]);
	});
});

describe("warnings about ineffective or ambiguous settings", () => {
	const warningsOf = (env: Record<string, string>) =>
		loadConfig({ DATABASE_URL: "postgres://h/d", KEY_PEPPER: SECRET, CONSOLE_SECRET: SECRET, ...env }, cwd).warnings;

	test("name a HOST that other machines can reach outside production", () => {
		for (const HOST of ["0.0.0.0", "::", "192.0.2.1"])
			expect(warningsOf({ HOST })).toEqual([expect.stringContaining(`HOST=${HOST} lets other machines in`)]);
		for (const HOST of ["127.0.0.1", "::1", "localhost"]) expect(warningsOf({ HOST })).toEqual([]);
		expect(warningsOf({ HOST: "0.0.0.0", NODE_ENV: "production" }).join()).not.toContain("HOST");
	});

	test("name a NODE_ENV that resembles production", () => {
		for (const mode of ["prod", "Production", "PRODUCTION", "production ", "staging"])
			expect([mode, warningsOf({ NODE_ENV: mode })]).toEqual([mode, [expect.stringContaining("NODE_ENV is ")]]);
		for (const mode of ["", "development", "test"]) expect(warningsOf({ NODE_ENV: mode })).toEqual([]);
	});

	test("name secrets that production would refuse", () => {
		const warnings = warningsOf({ KEY_PEPPER: "hunter2", CONSOLE_SECRET: "hunter3" });
		expect(warnings.map((text) => text.split(" ")[0])).toEqual(["KEY_PEPPER", "CONSOLE_SECRET"]);
		expect(warnings.join()).not.toContain("hunter");
	});

	test("name a misspelt setting, whatever its case or separators", () => {
		const wrong: Record<string, string> = {
			STRIPE_SECRET_KYE: "STRIPE_SECRET_KEY",
			STRIPESECRETKEY: "STRIPE_SECRET_KEY",
			public_url: "PUBLIC_URL",
			"PUBLIC-URL": "PUBLIC_URL",
			PUBLIC_URI: "PUBLIC_URL",
			TRUSTED_PROXY: "",
			METRIC_TOKEN: "METRICS_TOKEN",
			WORKER: "WORKERS",
		};
		for (const [name, meant] of Object.entries(wrong))
			expect(warningsOf({ [name]: "x" })).toEqual(meant === "" ? [] : [`${name} is unknown: did you mean ${meant}?`]);
		expect(warningsOf({ WORKER: "2", WORKERS: "2" })).toEqual([]);
	});

	test("do not name variables of operating systems, shells, clusters and drivers", () => {
		const names = CONFIG_TABLE.map(({ name }) => name);
		const others = ["HOME", "PATH", "HOSTNAME", "SHELL", "USER", "TERM", "LANG", "EDITOR", "COLUMNS", "JOURNAL_STREAM"];
		const clusters = ["TOLLGATE_PORT", "TOLLGATE_SERVICE_HOST", "KUBERNETES_PORT", "PGHOST", "PGUSER", "NODE_OPTIONS"];
		const traces = ["OTEL_BLRP_SCHEDULE_DELAY", "OTEL_TRACES_EXPORTER", "OTEL_LOGS_EXPORTER"];
		for (const name of [...names, ...others, ...clusters, ...traces, "TMPDIR", "XDG_CONFIG_HOME", "CONFIG_SITE"])
			expect([name, environmentWarnings({ [name]: "development" }, names)]).toEqual([name, []]);
	});

	test("name a path that only a shell would expand", () => {
		expect(warningsOf({ DATA_DIR: "~/data" })).toEqual([expect.stringContaining("DATA_DIR begins with ~")]);
		expect(warningsOf({ DATA_DIR: "$HOME/data" })).toEqual([expect.stringContaining("DATA_DIR begins with $")]);
		expect(warningsOf({ DATA_DIR: "/srv/~data" })).toEqual([]);
	});

	test("report a MAIL_FROM that is not a mail address", () => {
		const mail = { SMTP_URL: "smtp://h" };
		for (const MAIL_FROM of ["noreply", "a@b\nBcc: c@d", "@b", "a@", "Name <a b>"])
			expect([MAIL_FROM, problemsOf({ ...mail, MAIL_FROM })[0]]).toEqual([
				MAIL_FROM,
				expect.stringContaining("MAIL_FROM"),
			]);
		for (const MAIL_FROM of ["a@b", "Service <no-reply@service.example>", '"Müller, AG" <a@b.example>'])
			expect(problemsOf({ ...mail, MAIL_FROM })).toEqual([]);
	});
});

describe("roles", () => {
	test("a gateway needs no session secret and ignores the console's variables", () => {
		const { CONSOLE_SECRET: _, ...withoutSessions } = PRODUCTION;
		expect(problemsOf({ ...withoutSessions, ROLE: "gateway" })).toEqual([]);
		expect(problemsOf({ ...withoutSessions, ROLE: "console" })).toHaveLength(1);
		const given = {
			...PRODUCTION,
			ROLE: "gateway",
			STRIPE_SECRET_KEY: "sk_test_1",
			SMTP_URL: "smtp://h",
			MAIL_FROM: "",
		};
		const config = loadConfig(given, cwd);
		expect(config).toMatchObject({ role: "gateway", consoleSecret: null, stripe: null, mail: null });
		expect(JSON.stringify(config.env)).not.toMatch(/sk_test_1|smtp/);
		expect(config.warnings.join()).toContain("does not use CONSOLE_SECRET, STRIPE_SECRET_KEY, SMTP_URL");
	});

	test("a demo on a HOST that other machines reach requires --demo-public", () => {
		const refused = [expect.stringContaining("--demo-public")];
		for (const HOST of ["0.0.0.0", "::", "192.0.2.1"]) {
			expect(problemsOf({ HOST })).toEqual(refused);
			const open = loadConfig({ HOST, DEMO_PUBLIC: "1" }, cwd);
			expect([open.demo, open.warnings[0]]).toEqual([true, expect.stringContaining("lets other machines in")]);
			expect(problemsOf({ HOST, DATABASE_URL: "postgres://db/x" })).toEqual([]);
		}
		expect(problemsOf({ HOST: "::1" })).toEqual([]);
	});

	test("a process of one plane runs the demo only if DEMO=1, and never in production", () => {
		expect(loadConfig({}, cwd).demo).toBe(true);
		for (const ROLE of ["gateway", "console"]) expect(loadConfig({ ROLE }, cwd).demo).toBe(false);
		const child = { ROLE: "gateway", RUN_DIR: "/r", DATABASE_URL: "postgres://h/d" };
		expect(loadConfig(child, cwd).demo).toBe(false);
		expect(loadConfig({ ...child, DEMO: "1" }, cwd).demo).toBe(true);
		expect(loadConfig({ ...child, DEMO: "1", NODE_ENV: "production", KEY_PEPPER: SECRET }, cwd).demo).toBe(false);
	});

	test("separate planes require a long shared INTERNAL_SECRET", () => {
		expect(problemsOf({ GATEWAY_URL: "http://gateway:8080" })).toHaveLength(1);
		expect(problemsOf({ GATEWAY_URL: "http://gateway:8080", INTERNAL_SECRET: "short" })).toHaveLength(1);
		expect(problemsOf({ GATEWAY_URL: "http://gateway:8080", INTERNAL_SECRET: SECRET })).toEqual([]);
		expect(problemsOf({ ROLE: "both" })).toEqual(['ROLE must be one of all, gateway, console; got "both"']);
	});
});

describe("the demo's data folder", () => {
	test("is a subfolder of DATA_DIR", () => {
		const dataDir = (env: Record<string, string>) => loadConfig({ DATA_DIR: "d", ...env }, cwd).dataDir;
		expect(dataDir({})).toBe(join(cwd, "d", "demo"));
		expect(dataDir({ DATABASE_URL: "postgres://db/x" })).toBe(join(cwd, "d"));
		expect(dataDir(PRODUCTION)).toBe(join(cwd, "d"));
		// Child processes get the database's URL and DEMO, so they use the same folder.
		const child = { RUN_DIR: "/run/x", DATABASE_URL: "postgres://db/x", DEMO: "1" };
		expect(dataDir({ ...child, ROLE: "gateway" })).toBe(join(cwd, "d", "demo"));
		writeFileSync(join(cwd, "tollgate.yaml"), "");
		expect(dataDir({})).toBe(join(cwd, "d"));
	});
});

describe("loadOrCreateSecrets", () => {
	test("creates the secrets and an instance name once, and only the user can read them", () => {
		const config = loadConfig({}, cwd);
		const first = loadOrCreateSecrets(config);
		expect(first.made).toEqual(["KEY_PEPPER", "CONSOLE_SECRET", "INSTANCE_ID"]);
		expect(first.keyPepper).toMatch(/^[0-9a-f]{64}$/);
		expect(first.keyPepper).not.toBe(first.consoleSecret);
		expect(first.instanceId).toMatch(/^[A-Za-z0-9._-]{1,63}$/);
		expect(first.path).toBe(join(cwd, ".data/demo/secrets.json"));
		expect(statSync(first.path).mode & 0o777).toBe(0o600);
		expect(loadOrCreateSecrets(config)).toEqual({ ...first, made: [] });
		expect(readdirSync(join(cwd, ".data/demo")).sort()).toEqual(["console-secret", "instance-id", "secrets.json"]);
		expect(statSync(join(cwd, ".data/demo/console-secret")).mode & 0o777).toBe(0o600);
	});

	test("returns secrets of the environment, and leaves the stored secrets unchanged", () => {
		const given = loadOrCreateSecrets(loadConfig({ KEY_PEPPER: "given", INSTANCE_ID: "here" }, cwd));
		expect(given).toMatchObject({ keyPepper: "given", instanceId: "here", made: ["CONSOLE_SECRET"] });
		const later = loadOrCreateSecrets(loadConfig({}, cwd));
		expect(later.consoleSecret).toBe(given.consoleSecret);
		expect(later.keyPepper).toMatch(/^[0-9a-f]{64}$/);
	});

	test("writes no file if the environment has all secrets", () => {
		loadOrCreatePepper(loadConfig({ KEY_PEPPER: "given" }, cwd));
		loadOrCreateSecrets(loadConfig({ ...PRODUCTION, INSTANCE_ID: "i" }, cwd));
		expect(existsSync(join(cwd, ".data"))).toBe(false);
	});

	test("returns equal secrets to processes that start at the same time", async () => {
		const script = join(cwd, "entry.ts");
		const path = (name: string) => JSON.stringify(join(import.meta.dir, "../src", name));
		writeFileSync(
			script,
			`import { loadConfig } from ${path("config.ts")};\nimport { loadOrCreateSecrets } from ${path("secrets.ts")};\nprocess.stdout.write(JSON.stringify(loadOrCreateSecrets(loadConfig({}, ${JSON.stringify(cwd)}))));\n`,
		);
		const runs = Array.from({ length: 6 }, () => Bun.spawn([process.execPath, script], { stdout: "pipe" }));
		const answers = await Promise.all(runs.map(async (run) => JSON.parse(await new Response(run.stdout).text())));
		for (const field of ["keyPepper", "consoleSecret", "instanceId"]) {
			expect(new Set(answers.map((answer) => answer[field])).size).toBe(1);
		}
		expect(answers.filter((answer) => answer.made.includes("KEY_PEPPER")).length).toBe(1);
	});

	test("returns the secrets of another process that creates the files first", () => {
		const config = loadConfig({ INSTANCE_ID: "i" }, cwd);
		let winner: ReturnType<typeof loadOrCreateSecrets> | undefined;
		const link = spyOn(fs, "linkSync").mockImplementationOnce((from, to) => {
			winner = loadOrCreateSecrets(config);
			link.mockRestore();
			fs.linkSync(from, to);
		});
		const loser = loadOrCreateSecrets(config);
		expect(loser.keyPepper).toBe(winner?.keyPepper ?? "");
		expect(loser.made).toEqual([]);
		expect(readdirSync(join(cwd, ".data/demo")).sort()).toEqual(["console-secret", "secrets.json"]);
	});

	test("throws on a full disk and leaves no part of a secret", () => {
		for (const failing of ["writeSync", "fsyncSync"] as const) {
			const call = spyOn(fs, failing).mockImplementation(() => {
				throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
			});
			expect(() => loadOrCreateSecrets(loadConfig({}, cwd))).toThrow("(ENOSPC)");
			call.mockRestore();
			expect(readdirSync(join(cwd, ".data/demo"))).toEqual([]);
		}
	});

	test("throws for a damaged secrets file and leaves it unchanged", () => {
		const config = loadConfig({}, cwd);
		const { path } = loadOrCreateSecrets(config);
		for (const damaged of ["", "{", '{"key_pepper":"short","console_secret":"short"}', "null"]) {
			writeFileSync(path, damaged);
			expect(() => loadOrCreateSecrets(config)).toThrow(ConfigError);
			expect(readFileSync(path, "utf8")).toBe(damaged);
		}
	});

	test("throws for a damaged console secret", () => {
		const config = loadConfig({}, cwd);
		const { path } = loadOrCreateSecrets(config);
		writeFileSync(join(dirname(path), "console-secret"), "short\n");
		expect(() => loadOrCreateSecrets(config)).toThrow("which ends all sessions");
	});

	test("does not open or create the console secret's file in a gateway", () => {
		const reads = spyOn(fs, "readFileSync");
		const apart = { DATABASE_URL: "postgres://db/x" };
		const gateway = loadOrCreateSecrets(loadConfig({ ...apart, ROLE: "gateway" }, cwd));
		expect(gateway).toMatchObject({ consoleSecret: "", made: ["KEY_PEPPER", "INSTANCE_ID"] });
		const people = loadOrCreateSecrets(loadConfig({ ...apart, ROLE: "console" }, cwd));
		expect(people).toMatchObject({ keyPepper: gateway.keyPepper, made: ["CONSOLE_SECRET"] });
		reads.mockClear();
		loadOrCreateSecrets(loadConfig({ ...apart, ROLE: "gateway" }, cwd));
		expect(reads.mock.calls.map(([path]) => basename(String(path))).sort()).toEqual(["instance-id", "secrets.json"]);
		expect(readFileSync(people.path, "utf8")).not.toContain(people.consoleSecret);
	});

	test("removes other users' access to a secrets file", () => {
		const config = loadConfig({}, cwd);
		const { path } = loadOrCreateSecrets(config);
		chmodSync(path, 0o644);
		loadOrCreateSecrets(config);
		expect(statSync(path).mode & 0o777).toBe(0o600);
	});

	test("throws ConfigError for a DATA_DIR that is not a directory", () => {
		writeFileSync(join(cwd, "file"), "");
		expect(() => loadOrCreateSecrets(loadConfig({ DATA_DIR: "file" }, cwd))).toThrow("DATA_DIR must be a directory");
	});
});

test("reports an unreadable catalogue instead of starting the demo", () => {
	symlinkSync("tollgate.yaml", join(cwd, "tollgate.yaml"));
	for (const env of [{}, { CONFIG: "tollgate.yaml" }])
		expect(() => loadConfig(env, cwd)).toThrow(`CONFIG: ${join(cwd, "tollgate.yaml")} cannot be read (ELOOP)`);
});
