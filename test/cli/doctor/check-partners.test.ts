import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkMail, checkPayments } from "../../../src/cli/doctor/check-partners.ts";
import { checkUpstreams } from "../../../src/cli/doctor/check-upstreams.ts";
import { loadConfig } from "../../../src/config.ts";
import { atEnd, jsonServer, localServer, temporaryFolder } from "../../support/at-end.ts";
import { expectFinding, expectWell } from "./find.ts";

const folder = temporaryFolder();
const SECRETS = {
	KEY_PEPPER: "0123456789abcdefghijklmnopqrstuvwxyz",
	CONSOLE_SECRET: "zyxwvutsrqponmlkjihgfedcba9876543210",
};
writeFileSync(join(folder, "models.yaml"), "models: []\n");
const configOf = (env: Record<string, string>) => loadConfig({ DATABASE_URL: "postgres://db/x", ...env }, folder);

describe("the doctor's check of the model servers", () => {
	const serve = (...answers: Parameters<typeof jsonServer>) => `http://127.0.0.1:${jsonServer(...answers)}/v1`;

	/** Checks a catalogue with one model, which has a replica at each address. */
	function check(urls: string | readonly string[], options: { dialect?: string; model?: string; key?: string } = {}) {
		const { dialect = "vllm", model = "served", key } = options;
		const kind = dialect === "tei" ? "kind: embedding" : "kind: chat, max_output_tokens: 512";
		const rates = dialect === "tei" ? '{ input: "1" }' : '{ input: "1", output: "1" }';
		const upstreams = [urls]
			.flat()
			.map((url) => `{ url: "${url}", model: "${model}", dialect: ${dialect}${key ? `, api_key: ${key}` : ""} }`);
		return checkText(
			`models: [{ id: m, ${kind}, context_length: 8192, rates: ${rates}, upstreams: [${upstreams.join(", ")}] }]`,
		);
	}

	function checkText(text: string) {
		const configPath = join(folder, "checked.yaml");
		writeFileSync(configPath, text);
		return checkUpstreams({ configPath, demo: false, env: {} });
	}

	const vllm = { "/v1/models": { data: [{ id: "served", owned_by: "vllm", max_model_len: 8192 }] } };

	test("accepts a server that answers, has the model and matches its dialect", async () => {
		expectFinding(await check(serve(vllm)), "ok", /m#1 \(vllm at http.*has served/);
		const ollama = serve({ "/v1/models": { data: [{ id: "llama3.2:latest" }] }, "/api/version": { version: "1" } });
		expectWell(await check(ollama, { dialect: "ollama", model: "llama3.2" }));
		expectWell(await check(serve({ "/info": { model_id: "bge" } }), { dialect: "tei", model: "bge" }));
		const tgi = serve({ "/v1/models": { data: [{ id: "served" }] }, "/info": { model_id: "served" } });
		expectWell(await check(tgi, { dialect: "tgi" }));
		// llama.cpp answers with its only model, whatever model name the request has.
		const llama = serve({ "/v1/models": { data: [{ id: "a.gguf", owned_by: "llamacpp" }] } });
		expectWell(await check(llama, { dialect: "llama.cpp" }));
	});

	test("names the fault of each server and does not show its key", async () => {
		const short = { data: [{ id: "served", owned_by: "vllm", max_model_len: 4096 }] };
		const cases = [
			[check("http://127.0.0.1:1/v1"), "broken", /does not answer/],
			[check(serve(vllm), { model: "other" }), "broken", /has no model other; it has served/],
			[check(serve({ "/v1/models": 401 })), "broken", /refuses requests without a key \(401\)/],
			[check(serve({ "/v1/models": 403 }), { key: "canary-key" }), "broken", /refuses its key/],
			[check(serve({})), "warning", /does not list its models \(404\)/],
			[check(serve(vllm), { dialect: "sglang" }), "warning", /looks like vLLM/],
			[check(serve({ "/v1/models": short })), "warning", /4096 tokens of context, the catalogue states 8192/],
			[
				check(serve({ "/info": { model_id: "another" } }), { dialect: "tei" }),
				"broken",
				/has no model served; it has another/,
			],
			[check(serve({ "/info": 401 }), { dialect: "tei" }), "broken", /refuses .*\(401\)/],
			[check(serve({}), { dialect: "tei" }), "warning", /does not list its models \(404\)/],
			[checkText("models: []"), "warning", /the catalogue has no model$/],
			[checkText("models: [{ id: a, knid: chat }]"), "broken", /checked\.yaml:1: .*knid/],
			[checkUpstreams({ configPath: folder, demo: false, env: {} }), "broken", /cannot be read/],
			[checkUpstreams({ configPath: null, demo: false, env: {} }), "warning", /no catalogue/],
		] as const;
		for (const [findings, state, what] of cases) {
			const finding = (await findings).filter(({ what: text }) => what.test(text));
			expect([String(what), finding[0]?.state]).toEqual([String(what), state]);
			expect(JSON.stringify(finding)).not.toContain("canary");
		}
	});

	test("checks each replica of a model", async () => {
		const findings = await check([serve(vllm), "http://127.0.0.1:1/v1"]);
		expectFinding(findings, "ok", /m#1/);
		expectFinding(findings, "broken", /m#2/);
	});
});

describe("the doctor's check of the mail server", () => {
	/** Starts a mail server that accepts one password and records the commands that it receives. */
	function startMail(): { url(password: string): string; told: string[] } {
		const told: string[] = [];
		const server = Bun.listen({
			hostname: "127.0.0.1",
			port: 0,
			socket: {
				open: (socket) => void socket.write("220 mail.example ESMTP\r\n"),
				data(socket, bytes) {
					for (const line of bytes.toString().split("\r\n").filter(Boolean)) {
						told.push(line);
						const right = line === `AUTH PLAIN ${Buffer.from("\0me\0right").toString("base64")}`;
						if (line.startsWith("EHLO")) socket.write("250-mail.example\r\n250 AUTH PLAIN\r\n");
						else if (line.startsWith("AUTH")) socket.write(right ? "235 ok\r\n" : "535 no\r\n");
						else if (line === "QUIT") socket.end("221 bye\r\n");
						else socket.write("502 what\r\n");
					}
				},
			},
		});
		atEnd(() => server.stop(true));
		return { url: (password) => `smtp://me:${password}@127.0.0.1:${server.port}`, told };
	}
	const check = (smtpUrl: string) => checkMail(configOf({ SMTP_URL: smtpUrl, MAIL_FROM: "a@b.example" }));

	test("accepts a server that accepts the login, and sends no mail", async () => {
		const mail = startMail();
		expectWell(await check(mail.url("right")));
		expect(mail.told[0]).toStartWith("EHLO");
		expect(mail.told.filter((line) => /^(MAIL|RCPT|DATA)/.test(line))).toEqual([]);
	});

	test("fails on a wrong password, a missing server or a port that is for TLS only", async () => {
		const mail = startMail();
		const refused = expectFinding(await check(mail.url("canary")), "broken", /refuses the login/);
		expect(refused.todo).toContain("password");
		expect(JSON.stringify(refused)).not.toContain("canary");
		expectFinding(await check("smtp://127.0.0.1:1"), "broken", /ECONNREFUSED/);
		expectFinding(await check(mail.url("right").replace("smtp:", "smtps:")), "broken", /refuses the login/);
	});

	test("notes that no mail server is configured, and warns of this in production", async () => {
		expectFinding(await checkMail(configOf({})), "note", /SMTP_URL is not set/);
		const secrets = { KEY_PEPPER: "k".repeat(32), CONSOLE_SECRET: "c".repeat(32) };
		expectFinding(await checkMail(configOf({ NODE_ENV: "production", ...secrets })), "warning", /SMTP_URL is not set/);
	});
});

describe("the doctor's check of card payments", () => {
	const SITE = "https://ai.example";
	let webhooks: unknown[] = [];
	const stripe = localServer((request) => {
		const key = request.headers.get("authorization")?.slice("Bearer ".length);
		const error = (type: string) => ({ error: { type, message: "secret detail" } });
		if (request.method !== "GET") return Response.json(error("invalid_request_error"), { status: 400 });
		if (key === "rk_live_narrow") return Response.json(error("invalid_request_error"), { status: 403 });
		if (key !== "sk_live_right") return Response.json(error("invalid_request_error"), { status: 401 });
		if (new URL(request.url).pathname === "/v1/balance") return Response.json({ object: "balance" });
		return Response.json({ object: "list", data: webhooks });
	});
	const check = (env: Record<string, string>) =>
		checkPayments(
			configOf({
				STRIPE_API_BASE: `http://127.0.0.1:${stripe.port}`,
				STRIPE_WEBHOOK_SECRET: "whsec_x",
				STRIPE_SECRET_KEY: "sk_live_right",
				...env,
			}),
		);
	const webhook = (events: string[]) => ({
		url: `${SITE}/api/stripe/webhook`,
		status: "enabled",
		enabled_events: events,
	});

	test("accepts a valid Stripe key with a webhook for all events", async () => {
		webhooks = [webhook(["*"])];
		expectWell(await check({ PUBLIC_URL: SITE }));
		expectWell(await check({ STRIPE_SECRET_KEY: "rk_live_narrow" }));
	});

	test("fails on settings at Stripe that would lose payments, and does not show the key", async () => {
		expectFinding(await check({ STRIPE_WEBHOOK_SECRET: "" }), "broken", /STRIPE_WEBHOOK_SECRET is not set/);
		const refused = expectFinding(await check({ STRIPE_SECRET_KEY: "sk_live_canary" }), "broken", /refuses/);
		expect(JSON.stringify(refused)).not.toContain("canary");
		const production = { ...SECRETS, NODE_ENV: "production", CONFIG: "models.yaml" };
		expectFinding(await check({ ...production, STRIPE_SECRET_KEY: "sk_test_1" }), "warning", /test key/);
		webhooks = [webhook(["checkout.session.completed"])];
		expectFinding(await check({ PUBLIC_URL: SITE }), "broken", /lacks the events .*charge.refunded/);
		webhooks = [{ ...webhook(["*"]), status: "disabled" }];
		expectFinding(await check({ PUBLIC_URL: SITE }), "warning", /no enabled webhook/);
		expectFinding(await check({ STRIPE_API_BASE: "http://127.0.0.1:1" }), "warning", /does not answer/);
	});
});
