import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import { CHECKS, type Finding } from "../../../src/cli/doctor/finding.ts";
import { startEmbeddedPostgres } from "../../../src/db/embedded.ts";
import { localServer, temporaryFolder, untilEnd } from "../../support/at-end.ts";
import { placeCluster } from "../../support/made-cluster.ts";
import { chatModel } from "../../support/service.ts";
import { runCli } from "../run-cli.ts";
import { runHere } from "../run-here.ts";

const SECRETS = {
	KEY_PEPPER: "0123456789abcdefghijklmnopqrstuvwxyz",
	CONSOLE_SECRET: "zyxwvutsrqponmlkjihgfedcba9876543210",
};
const folder = temporaryFolder();

test("`doctor` exits 0 without problems, lists every area and changes nothing", async () => {
	const dataDir = join(folder, "data");
	mkdirSync(dataDir);
	await placeCluster(dataDir);
	untilEnd(await startEmbeddedPostgres({ log: silentLog }, { dataDir }));
	const list = { data: [{ id: "served-name", owned_by: "vllm", max_model_len: 8192 }] };
	const upstream = localServer(() => Response.json(list));
	const config = join(folder, "tollgate.yaml");
	writeFileSync(config, `models:\n${chatModel({ url: `http://127.0.0.1:${upstream.port}/v1`, dialect: "vllm" })}\n`);
	const before = readdirSync(dataDir);
	const env = { ...SECRETS, DATA_DIR: dataDir, CONFIG: config, PORT: "0" };
	const [json, text] = [await runHere(["doctor", "--json"], env, folder), await runCli(["doctor"], env, folder)];
	const { ok, findings } = json.json<{ ok: boolean; findings: Finding[] }>();
	// Ignores the warning of a slow database answer, which a busy machine can cause.
	const others = findings.filter(({ what }) => !/^PostgreSQL .* answers in [\d.]+ ms$/.test(what));
	expect(others.filter(({ state }) => state === "broken" || state === "warning")).toEqual([]);
	expect([ok, json.exitCode, text.exitCode, text.stderr]).toEqual([true, 0, 0, ""]);
	expect([...new Set(findings.map(({ area }) => area))]).toEqual([...CHECKS]);
	expect(text.stdout).toMatch(/\n(No problems\.|0 broken, 1 warnings\.)\n/);
	expect(readdirSync(dataDir)).toEqual(before);
}, 60_000);

test("`doctor` exits 1 for a broken service, with a remedy and without a secret", async () => {
	const config = join(folder, "bad.yaml");
	writeFileSync(config, `models:\n${chatModel({ url: "http://127.0.0.1:1/v1" })}\n        api_key: canary-upstream\n`);
	const env = {
		KEY_PEPPER: `canary-pepper-${"p".repeat(32)}`,
		CONSOLE_SECRET: `canary-console-${"c".repeat(32)}`,
		DATABASE_URL: "postgres://me:canary-database@127.0.0.1:1/x",
		DATA_DIR: join(folder, "elsewhere"),
		CONFIG: config,
		PORT: "0",
		SMTP_URL: "smtp://me:canary-mail@127.0.0.1:1",
		MAIL_FROM: "a@b.example",
		STRIPE_SECRET_KEY: "sk_test_canary",
		STRIPE_WEBHOOK_SECRET: "whsec_canary",
		STRIPE_API_BASE: "http://127.0.0.1:1",
	};
	const [json, text] = [await runHere(["doctor", "--json"], env, folder), await runCli(["doctor"], env, folder)];
	const { ok, findings } = json.json<{ ok: boolean; findings: Finding[] }>();
	expect([ok, json.exitCode, text.exitCode]).toEqual([false, 1, 1]);
	const broken = findings.filter(({ state }) => state === "broken");
	expect(broken.map(({ area }) => area)).toEqual(["database", "upstreams", "mail"]);
	for (const { what, todo } of broken) {
		expect(text.stdout).toContain(what);
		if (todo !== undefined) expect(text.stdout).toContain(`→ ${todo}`);
	}
	expect(text.stdout).toContain("3 broken, ");
	const runbook = readFileSync(join(import.meta.dir, "../../../src/ops/runbook.md"), "utf8");
	const headings = runbook.split("\n").filter((line) => line.startsWith("### Doctor: "));
	expect(headings).toEqual(CHECKS.map((area) => `### Doctor: ${area}`));
	for (const area of ["database", "upstreams", "mail"])
		expect(text.stdout).toContain(`src/ops/runbook.md#doctor-${area}`);
	expect(json.stdout + json.stderr + text.stdout + text.stderr).not.toContain("canary");
}, 60_000);

test("`doctor` for one plane reports no problem of the other plane", async () => {
	const config = join(folder, "away.yaml");
	writeFileSync(config, `models:\n${chatModel({ url: "http://127.0.0.1:1/v1" })}\n`);
	const of = async (role: string) => {
		const env = { ...SECRETS, NODE_ENV: "production", DATABASE_URL: "postgres://me@127.0.0.1:1/x", CONFIG: config };
		const { json } = await runCli(["doctor", "--json"], { ...env, ROLE: role, PORT: "0", DATA_DIR: folder }, folder);
		return json<{ findings: Finding[] }>()
			.findings.filter(({ state, what }) => state !== "ok" && !/in memory|are free|CONSOLE_SECRET/.test(what))
			.map(({ area, state }) => `${area} ${state}`);
	};
	expect(await of("gateway")).toEqual(["database broken", "upstreams broken"]);
	expect(await of("console")).toEqual(["configuration warning", "database broken", "mail warning", "payments note"]);
}, 60_000);

test("`doctor` reports an unreadable configuration and the line of a catalogue mistake", async () => {
	const wrong = await runCli(["doctor", "--json"], { PORT: "many" }, folder);
	expect([wrong.exitCode, wrong.json().findings[0].what]).toEqual([1, expect.stringContaining("PORT")]);
	writeFileSync(join(folder, "typo.yaml"), "models:\n  - id: a\n    knid: chat\n");
	const env = { ...SECRETS, DATABASE_URL: "postgres://me@127.0.0.1:1/x", CONFIG: "typo.yaml", PORT: "0" };
	const { stdout, exitCode } = await runCli(["doctor"], env, folder);
	expect(exitCode).toBe(1);
	expect(stdout).toMatch(/broken +upstreams .*typo\.yaml:3: /);
}, 60_000);
