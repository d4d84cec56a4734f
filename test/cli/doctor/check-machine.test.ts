import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseCatalogFile } from "../../../src/catalog/file.ts";
import { checkConfiguration } from "../../../src/cli/doctor/check-configuration.ts";
import { checkDisk } from "../../../src/cli/doctor/check-disk.ts";
import { checkLimits } from "../../../src/cli/doctor/check-limits.ts";
import { checkSecrets } from "../../../src/cli/doctor/check-secrets.ts";
import { loadConfig } from "../../../src/config.ts";
import { temporaryFolder, untilEnd } from "../../support/at-end.ts";
import { chatModel } from "../../support/service.ts";
import { expectFinding, expectWell } from "./find.ts";

const folder = temporaryFolder();
const PEPPER = "0123456789abcdefghijklmnopqrstuvwxyz";
const SECRETS = { KEY_PEPPER: PEPPER, CONSOLE_SECRET: PEPPER.toUpperCase() };
const configOf = (env: Record<string, string>) => loadConfig({ DATABASE_URL: "postgres://db/x", ...env }, folder);

/** Writes the file, and says that it took so long. */
const closed = (syncMs: number) => (path: string) => {
	writeFileSync(path, "");
	return syncMs;
};

describe("configuration", () => {
	test("every mistake is broken by itself, and the rest waits", () => {
		const { config, findings } = checkConfiguration(() => configOf({ PORT: "x", JOURNAL: "y" }));
		expect(config).toBeUndefined();
		expectFinding(findings, "broken", /^PORT/);
		expectFinding(findings, "broken", /^JOURNAL/);
	});

	test("what `serve` would warn of at its start is a warning, with what is said of it", () => {
		const { findings } = checkConfiguration(() => configOf({ BUN_CONFIG_VERBOSE_FETCH: "curl", ...SECRETS }));
		const { todo } = expectFinding(findings, "warning", /^BUN_CONFIG_VERBOSE_FETCH prints the keys/);
		expect(todo).not.toMatch(/^Set it/);
	});

	test("production without a public address, or with one in clear, works worse than it could", () => {
		const production = (env: Record<string, string>) => {
			writeFileSync(join(folder, "models.yaml"), "models: []\n");
			return checkConfiguration(() => configOf({ NODE_ENV: "production", CONFIG: "models.yaml", ...SECRETS, ...env }))
				.findings;
		};
		expectFinding(production({}), "warning", /PUBLIC_URL is not set/);
		expectFinding(production({ PUBLIC_URL: "http://ai.example" }), "broken", /^PUBLIC_URL/);
		expectFinding(production({ PUBLIC_URL: "http://localhost:8080" }), "warning", /no https/);
		expectWell(production({ PUBLIC_URL: "https://ai.example" }));
	});
});

describe("secrets", () => {
	test("good ones are well; made-up ones, equal ones and an open /metrics are warnings, none of which shows them", () => {
		expectWell(checkSecrets(configOf(SECRETS), undefined));
		const findings = checkSecrets(
			configOf({ KEY_PEPPER: "a".repeat(32), CONSOLE_SECRET: "a".repeat(32), HOST: "0.0.0.0" }),
			undefined,
		);
		expectFinding(findings, "warning", /^KEY_PEPPER does not look/);
		expectFinding(findings, "warning", /the same/);
		expectFinding(findings, "warning", /\/metrics is open/);
		const between = checkSecrets(
			configOf({ ...SECRETS, INTERNAL_SECRET: "a".repeat(32), METRICS_TOKEN: "a".repeat(16), HOST: "0.0.0.0" }),
			undefined,
		);
		expectFinding(between, "warning", /^INTERNAL_SECRET does not look/);
		expectFinding(between, "warning", /^METRICS_TOKEN does not look/);
		expect(JSON.stringify([findings, between])).not.toContain("aaaa");
	});

	test("a gateway has none of the console's: nobody says that it is set", () => {
		expectFinding(checkSecrets(configOf({ ...SECRETS, ROLE: "gateway" }), undefined), "ok", /^KEY_PEPPER is set$/);
	});

	test("those that are kept must be whole and closed to others; where there are none, none are made", () => {
		const dataDir = join(folder, "kept");
		const check = () => checkSecrets(configOf({ DATA_DIR: dataDir }), undefined);
		expectFinding(check(), "note", /will be made/);
		expect(existsSync(dataDir)).toBe(false);
		mkdirSync(dataDir);
		const path = join(dataDir, "secrets.json");
		writeFileSync(path, JSON.stringify({ key_pepper: PEPPER, console_secret: PEPPER }), { mode: 0o600 });
		expectFinding(check(), "ok", /are kept in/);
		chmodSync(path, 0o644);
		expectFinding(check(), "warning", /secrets.json can be read by others/);
		writeFileSync(join(dataDir, "console-secret"), PEPPER, { mode: 0o640 });
		expectFinding(check(), "warning", /console-secret can be read by others/);
		writeFileSync(path, "{");
		expectFinding(check(), "broken", /cannot be used/);
	});

	test("a key that stands in the catalogue is a warning; one from the environment, or in a comment, is none", () => {
		const check = (text: string) => checkSecrets(configOf(SECRETS), text);
		expectFinding(check("      api_key: sk-canary-1"), "warning", /has a key of model servers/);
		expectFinding(check('- { url: x, api_key: "sk-canary-1" }\n- { api_key: sk-canary-2 }'), "warning", /has 2 keys/);
		for (const text of [
			'"api_key": sk-canary-1',
			"'api_key' : sk-canary-1",
			'{"upstreams":[{"url":"x","api_key":"sk-canary-1"}]}',
			"{ api_key:\n  sk-canary-1 }",
			"api_key: >-\n  sk-canary-1",
			"x-key: &key sk-canary-1\napi_key: *key",
			"api_key: sk-canary-1\nmodels: [",
			"api_key: 123456",
		])
			expectFinding(check(text), "warning", /has a key of model servers/);
		expectFinding(check('[{"api_key":"sk-canary-1"}, {"api_key":"sk-canary-2"}]'), "warning", /has 2 keys/);
		expectWell(check(`  api_key: \${KEY}\n  api_key: "\${KEY}"\n# api_key: sk-old\n  # api_key: sk-old`));
	});
});

describe("disk", () => {
	test("a folder that is there, or can be made, is well, and left as it was", () => {
		expectWell(checkDisk(configOf({ DATA_DIR: join(folder, "not", "yet") })));
		expect(existsSync(join(folder, "not"))).toBe(false);
		const before = readdirSync(folder);
		expectWell(checkDisk(configOf({ DATA_DIR: folder })));
		expect(readdirSync(folder)).toEqual(before);
	});

	test("what cannot be written is broken, and what to do about it is as the reason is", () => {
		writeFileSync(join(folder, "file"), "");
		const { todo } = expectFinding(
			checkDisk(configOf({ DATA_DIR: join(folder, "file") })),
			"broken",
			/cannot be written/,
		);
		expect(todo).toContain("a file has that name");
		const failing = (code: string) => () => {
			throw Object.assign(new Error(`${code}: as the system says it`), { code });
		};
		for (const [code, words] of [
			["ENOSPC", "Make room"],
			["EDQUOT", "Make room"],
			["EROFS", "for writing"],
			["EACCES", "a folder of the user"],
		] as const) {
			const findings = checkDisk(configOf({ DATA_DIR: folder }), { timeSyncs: failing(code) });
			expect(expectFinding(findings, "broken", /cannot be written/).todo).toContain(words);
		}
	});

	test("one that is nearly full is a warning, a full one is broken; so is a network's no disk of this machine", () => {
		const MIB = 1024 ** 2;
		const room = { type: 61267, bsize: 4096, bavail: (4096 * MIB) / 4096, files: 1e6, ffree: 1e5 };
		const check = (system: Partial<typeof room>) =>
			checkDisk(configOf({ DATA_DIR: folder }), { systemOf: () => ({ ...room, ...system }) });
		expectWell(check({}));
		expectFinding(check({ bavail: (2047 * MIB) / 4096 }), "warning", /^2\.0 GiB are free/);
		expectFinding(check({ bavail: (63 * MIB) / 4096 }), "broken", /^0\.1 GiB are free/);
		expectFinding(check({ ffree: 9_999 }), "warning", /room for 9999 more files/);
		// A file system that has no number of files, as btrfs.
		expectWell(check({ files: 0, ffree: 0 }));
		expectFinding(check({ type: 26985 }), "warning", /network file system \(NFS\)/);
		// Some runtimes give the number with a sign.
		expectFinding(check({ type: 4283649346 | 0 }), "warning", /network file system \(CIFS\)/);
	});

	test("a slow one is a warning where every answer waits for it, else it is to be known", () => {
		const check = (syncMs: number, journal: string) =>
			checkDisk(configOf({ DATA_DIR: folder, JOURNAL: journal }), { timeSyncs: closed(syncMs) });
		expectFinding(check(20, "host"), "ok", /fsync takes 20\.0 ms$/);
		expectFinding(check(20.1, "process"), "note", /fsync takes 20\.1 ms$/);
		const { todo } = expectFinding(check(20.1, "host"), "warning", /fsync takes 20\.1 ms$/);
		expect(todo).toContain("faster disk");
	});

	test("one whose files cannot be locked is broken", () => {
		const findings = checkDisk(configOf({ DATA_DIR: folder }), { tryLock: () => undefined });
		expectFinding(findings, "broken", /^files in .* cannot be locked$/);
	});

	test.if(existsSync("/dev/shm"))("memory is no disk", () => {
		const env = { NODE_ENV: "production", ...SECRETS, DATA_DIR: "/dev/shm/tollgate" };
		expectFinding(checkDisk(configOf(env)), "broken", /in memory/);
		expectFinding(checkDisk(configOf({ DATA_DIR: "/dev/shm/tollgate" })), "warning", /in memory/);
	});
});

describe("limits", () => {
	const models = parseCatalogFile(`models:\n${chatModel({ url: "http://127.0.0.1:1/v1" })}\n`, {}).models;

	test("a free port is well; one that another program has is broken, one that Tollgate serves is not", async () => {
		const socket = { open: (one: { end(): unknown }) => void one.end(), data() {} };
		const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
		const config = configOf({ PORT: String(probe.port) });
		expectFinding(await checkLimits(config, models), "broken", /another program/);
		probe.stop(true);
		expectFinding(await checkLimits(config, models), "ok", /is free/);
		const ours = Bun.serve({
			hostname: "127.0.0.1",
			port: config.port,
			fetch: (request) => new Response(new URL(request.url).pathname === "/livez" ? "ok\n" : "status"),
		});
		untilEnd(ours);
		expectFinding(await checkLimits(config, models), "ok", /served by Tollgate/);
	});

	test("fewer fetches than the catalogue allows calls are broken", async () => {
		const few = configOf({ PORT: "0", BUN_CONFIG_MAX_HTTP_REQUESTS: "100" });
		expectFinding(await checkLimits(few, models), "broken", /100 fetches at once, the catalogue 256/);
		expectWell(await checkLimits(configOf({ PORT: "0", BUN_CONFIG_MAX_HTTP_REQUESTS: "256" }), models));
	});

	test.if(existsSync("/proc/self/limits"))(
		"fewer open files than the catalogue's calls need are a warning",
		async () => {
			const many = models.map((model) => ({
				...model,
				upstreams: model.upstreams.map((upstream) => ({ ...upstream, maxConcurrency: 1e9 })),
			}));
			expectFinding(
				await checkLimits(configOf({ PORT: "0" }), many),
				"warning",
				/open files are allowed; .* wants 2000/,
			);
		},
	);

	test("few ports for connections to model servers are a warning; a system that does not say is none", async () => {
		const check = (range: string) => checkLimits(configOf({ PORT: "0" }), models, { portRange: () => range });
		expectFinding(await check("10000\t19999\n"), "ok", /^10000 ports/);
		expectFinding(await check("10000\t19998\n"), "warning", /^only 9999 ports/);
		expect((await check("")).filter(({ what }) => what.includes("ports are there"))).toEqual([]);
	});

	test("a port that this user may not have is broken", async () => {
		const listen = () => {
			throw Object.assign(new Error("permission denied"), { code: "EACCES" });
		};
		const findings = await checkLimits(configOf({ PORT: "443" }), models, { listen });
		expectFinding(findings, "broken", /:443 is not for this user$/);
	});

	test("an address that is none of this machine's is broken", async () => {
		const elsewhere = configOf({ HOST: "192.0.2.1", PORT: "8080" });
		expectFinding(await checkLimits(elsewhere, models), "broken", /^192\.0\.2\.1:8080 cannot be listened on/);
	});
});
