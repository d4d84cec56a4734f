import { mkdirSync } from "node:fs";
import { join } from "node:path";
import OpenAI, { APIError } from "openai";
import type { Browser, Page } from "playwright-core";
import { startStripe } from "../billing/stripe-server.ts";
import { operator, PERSON_ENV, type Person, signedUp, topUp } from "../console/person.ts";
import { atEnd } from "../support/at-end.ts";
import { chatModel, type ServiceOptions, startService, type TestService, withService } from "../support/service.ts";
import { rebuildAllSums } from "../support/sums.ts";
import { reply, startUpstream, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { hasChromium, launch, openTab, type Tab, type TabOptions } from "./chromium.ts";

/** `models` are ids of models on one server; `modelExtra` is additional YAML of each model in the catalogue. */
export interface SceneOptions extends Omit<ServiceOptions, "models"> {
	readonly models?: readonly string[];
	readonly modelExtra?: string;
}

/** Starts the service and browser for all tests of a file; await it at the top of the file. */
export async function withScene(options: SceneOptions = {}) {
	const upstream = withUpstream("vllm");
	upstream.always(() => reply().text("Hello."));
	const extra = options.modelExtra ?? "";
	const models = (options.models ?? [MODEL]).map((id) => chatModel({ id, url: upstream.url, dialect: "vllm", extra }));
	const env = { ...PERSON_ENV, ...options.env };
	const [service, browser] = await Promise.all([
		withService({ ...options, models: models.join("\n"), env }),
		withBrowser(),
	]);
	return {
		service,
		upstream,
		/** Opens a tab. If there is no browser, and tests are skipped, returns an empty object. */
		open: async (tab?: TabOptions) => (browser === undefined ? ({} as Tab) : openTab(browser, service.url, tab)),
	};
}

/** Starts a browser for all tests of a file; undefined if none is installed. */
export async function withBrowser(): Promise<Browser | undefined> {
	if (!hasChromium) return undefined;
	const browser = await launch();
	atEnd(() => browser.close());
	return browser;
}

/** A service with two models, one of them without a server, an operator, and customers with different credit. */
export type Stage = Awaited<ReturnType<typeof setStage>>;

export const MODEL = "llama-3.3-70b-instruct";
const STRIPE_ENV = { STRIPE_SECRET_KEY: "sk_test_local", STRIPE_WEBHOOK_SECRET: "whsec_stage" };
/** An operator's brand, with a colour that is too pale for text. */
export const OWN_BRAND = `  name: Acme Inference
  accent: "#ffcc00"
  headline: Models from the Alps
  support: help@acme.example
  privacy: https://acme.example/privacy`;
export const LONG_MODEL = "deepseek-ai/DeepSeek-R1-Distill-Llama-70B-Instruct-FP8-dynamic-128k";
const LONG_NAME = "search-api production, European region, reindexing at night";
const USAGE_ROWS = 3_000;
const USAGE_DAYS = 30;

/** Starts the service with its customers. `own`: with an operator's brand and card payments. */
export async function setStage({ own = false } = {}) {
	const upstream = startUpstream({ dialect: "vllm" });
	upstream.always(() => reply().text("A short answer, a word at a time.").trickle(15));
	const stripe = own ? startStripe() : undefined;
	const gone = startUpstream({ dialect: "vllm" });
	const models = [
		chatModel({ id: MODEL, url: upstream.url, dialect: "vllm", extra: "    name: Llama 3.3 70B Instruct" }),
		chatModel({
			id: "qwen/qwen3-32b",
			url: upstream.url,
			dialect: "vllm",
			extra: "    name: Qwen3 32B\n    retires_on: 2099-01-01",
		}),
		chatModel({ id: "mistral-small-3.2", url: gone.url, dialect: "vllm", extra: "    name: Mistral Small 3.2" }),
		chatModel({
			id: LONG_MODEL,
			url: upstream.url,
			dialect: "vllm",
			extra: "    name: DeepSeek R1 Distill Llama 70B Instruct, FP8 dynamic, 128k context",
		}),
	].join("\n");
	await gone.stop();
	const service = await startService({
		models,
		...(own ? { brand: OWN_BRAND } : {}),
		env: { ...PERSON_ENV, ...(stripe ? { ...STRIPE_ENV, STRIPE_API_BASE: stripe.url } : {}) },
	});
	const boss = await operator(service);
	const [rich, extreme, fresh] = [await signedUp(service), await signedUp(service), await signedUp(service)];
	const ids = { ...(await makeExtremes(service, extreme)), ...(await makeHistory(service, boss, rich)) };
	return {
		service,
		upstream,
		operator: boss,
		rich,
		/** A customer with names of maximum length, amounts above a million dollars and below a millionth. */
		extreme,
		fresh,
		ids,
		async stop() {
			await service.stop();
			await upstream.stop();
			stripe?.stop();
		},
	};
}

async function makeHistory(service: TestService, boss: Person, rich: Person & { accountId: string }) {
	await topUp(rich, boss, "250");
	await topUp(rich, boss, "1000");
	await rich.send("POST", "/api/console/credit/top-ups/transfer", { usd: "500" });
	await rich.send("PUT", "/api/console/alert", { usd: "25" });
	const make = async (body: object) => (await rich.send("POST", "/api/console/keys", body)).body;
	const main = await make({ name: "search-api production", capUsd: "200" });
	const second = await make({ name: "batch jobs, staging", capUsd: "0.05", models: [MODEL], requestsPerMinute: 60 });
	const old = await make({ name: "first try" });
	await rich.send("POST", `/api/console/keys/${old.key.id}/revoke`);
	await writeHistory(service, rich.accountId, [main.key.id, second.key.id]);
	const answer = await service.post("/v1/chat/completions", main.secret, {
		model: MODEL,
		messages: [{ role: "user", content: "Hello!" }],
		max_tokens: 32,
	});
	await answer.text();
	await service.settled();
	// Rebuilds the hourly sums, because the regular summing skips rows of the past.
	await rebuildAllSums(service.db.statements);
	await writeSpeeds(service);
	const { body } = await rich.get("/api/console/requests?limit=1");
	// Refused requests: one above the second key's cap, and one for an unknown model.
	const { refused } = await refuse(service, rich, second.secret, { n: 64 });
	await refuse(service, rich, main.secret, { model: "llama-4" });
	const { body: project } = await rich.send("POST", "/api/console/projects", { name: "Search", capUsd: "300" });
	return { key: main.key.id as string, request: body.items[0].id as string, refused, project: project.id as string };
}

/** Writes many measured responses for one model, and too few for another. */
async function writeSpeeds(service: TestService): Promise<void> {
	const [much, little] = [MODEL, "mistral-small-3.2"];
	await service.db.sql`delete from model_speed where model in (${much}, ${little})`;
	await service.db.sql`
		insert into model_speed (hour, model, kind, bucket, requests)
		select date_trunc('hour', now()), model, kind, bucket, requests from (values
			(${much}, 'first_token', 50, 1234), (${much}, 'rate', 38, 1000),
			(${little}, 'first_token', 50, 19), (${little}, 'rate', 38, 19)) v (model, kind, bucket, requests)`;
}

async function refuse(service: TestService, person: Person, secret: string, more: object) {
	const body = { model: MODEL, messages: [{ role: "user", content: "Hello!" }], max_tokens: 1_000, ...more };
	const response = await service.post("/v1/chat/completions", secret, body);
	await response.text();
	const refused = response.headers.get("x-request-id") ?? "";
	const isListed = async () => (await person.get(`/api/console/requests/${refused}`)).status === 200;
	await waitFor(isListed, "the refusal to be on the log");
	return { refused };
}

async function makeExtremes(service: TestService, extreme: Person & { accountId: string }) {
	const { sql } = service.db;
	const id = crypto.randomUUID();
	const note = "The balance carried over from the previous contract, see invoice 2026-11-0042";
	await sql`select ledger_book(${id}, ${extreme.accountId}, 'adjustment', 1234567890000000, ${id}, 'test', ${note}, false)`;
	await sql`update account set topped_up = true where id = ${extreme.accountId}`;
	const { body } = await extreme.send("POST", "/api/console/keys", {
		name: LONG_NAME,
		capUsd: "1234567.89",
		models: [LONG_MODEL],
	});
	await sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
			admitted_at, first_token_ms, duration_ms, settled_at)
		select gen_random_uuid(), ${extreme.accountId}, ${body.key.id}, 'none', 0, ${LONG_MODEL}, ${`${LONG_MODEL}@1`}, 'chat', true,
			1234567890000000, (array[300, 1, 12345678, 1234567890000000, 98765432100])[1 + n % 5], (array['exact', 'estimated', 'recovered'])[1 + n % 3],
			(array['finished', 'client_left', 'upstream_failed'])[1 + n % 3], (array[200, 499, 502])[1 + n % 3], 12345678 * (n % 3), 0, 98765 * n, 0,
			at, case when n % 3 = 2 then null else 4 + 12000 * n end, 9 + 270000 * n, at + interval '1 second'
		from (select n, now() - interval '3 minutes' - n * interval '1 day' as at from generate_series(0, 14) n) g`;
	const { body: log } = await extreme.get("/api/console/requests?limit=4");
	const extremeRefused = crypto.randomUUID();
	await sql`
		insert into refused_request (request_id, account_id, key_id, model, endpoint, code, status, message, param,
			available_nano_usd, held_nano_usd, required_nano_usd, affordable_tokens, refused_at, repeats, repeated_at)
		values (${extremeRefused}, ${extreme.accountId}, ${body.key.id}, ${"x".repeat(128)}, 'transcription', 'key_cap_exceeded', 402, 'x',
			'messages[0].content[0].image_url.url', 1234567890000001, 1234567890000002, 9007199254740991, 131072, now() - interval '2 minutes',
			1234567, now() - interval '1 minute')`;
	await sql`insert into refused_settlement (instance_id, epoch, requests, charged_nano_usd) values (${LONG_NAME}, 1, 12345678, 1234567890000001)`;
	const { body: project } = await extreme.send("POST", "/api/console/projects", {
		name: LONG_NAME,
		capUsd: "1234567.89",
		models: [LONG_MODEL],
		requestsPerMinute: 100_000,
	});
	return {
		extremeKey: body.key.id as string,
		extremeRequest: log.items[3].id as string,
		extremeRefused,
		extremeProject: project.id as string,
	};
}

/** A month of requests, more of them on weekdays. */
async function writeHistory(service: TestService, accountId: string, keyIds: readonly string[]): Promise<void> {
	await service.db.sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
			admitted_at, first_token_ms, duration_ms, settled_at)
		select gen_random_uuid(), ${accountId}, (string_to_array(${keyIds.join(",")}, ','))[1 + n % 2], 'none', 0,
			(array[${MODEL}, ${MODEL}, 'qwen/qwen3-32b', 'mistral-small-3.2'])[1 + n % 4], 'none@1', 'chat', n % 2 = 0,
			40000000, case when n % 97 = 0 then 0 else 42000 * (n % 7) * (n % 7) * (1 + n % 13) + 81200 end, case when n % 53 = 0 then 'estimated' else 'exact' end,
			case when n % 97 = 0 then 'upstream_failed' when n % 53 = 0 then 'client_left' else 'finished' end,
			case when n % 97 = 0 then 502 else 200 end, 100 + 37 * (n % 50), n % 20, 50 + 11 * (n % 100), 0,
			at, case when n % 97 = 0 then null else 120 + n % 300 end, 900 + n % 2000, at + interval '1 second'
		from (select n, now() - interval '3 minutes' - n * (${USAGE_DAYS}::int * interval '1 day' / ${USAGE_ROWS}::int) as at
			from generate_series(0, ${USAGE_ROWS - 1}::int) n) g`;
}

/** Sends a chat with a key through the SDK; returns "answered", or status and code of the refusal. */
export async function callWith(url: string, apiKey: string, model = MODEL): Promise<string> {
	const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
	try {
		await client.chat.completions.create({ model, messages: [{ role: "user", content: "Hello!" }], max_tokens: 16 });
		return "answered";
	} catch (error) {
		if (!(error instanceof APIError)) throw error;
		return `${error.status} ${error.code}`;
	}
}

export const WITH_PICTURES = Bun.env.PICTURES !== undefined;
/** With `PICTURES=own` pages have an operator's brand. */
export const WITH_OWN_BRAND = Bun.env.PICTURES === "own";
const PICTURES = join(import.meta.dir, "screenshots", ...(WITH_OWN_BRAND ? ["own-brand"] : []));

/** Timeout of a screenshot: pages are long, and several are drawn at the same time. */
const PICTURE_MS = 120_000;

/** Takes a screenshot of the whole page if `PICTURES` is set; the repository contains none. */
export async function picture(page: Page, name: string): Promise<void> {
	if (!WITH_PICTURES) return;
	mkdirSync(PICTURES, { recursive: true });
	await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true, timeout: PICTURE_MS });
}
