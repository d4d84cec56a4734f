import { describe, expect, test } from "bun:test";
import OpenAI7 from "openai";
import OpenAI6 from "openai6";
import { priceOf } from "../support/chat.ts";
import { LONG } from "../support/long-form.ts";
import { chatModel, withService } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

/** The unmodified SDKs work if a customer changes only base URL, key and model. */

const MODEL = "acme/llama-3.3-70b";
const LIMITS =
	"  first_event_s: 1\n  total_s: 1\n  body_mb: 1\n  auth_failures_per_minute: 1000\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1\n  breaker_cool_s: 1";

const upstream = withUpstream("vllm");
const service = await withService({
	models: [
		chatModel({ id: MODEL, url: upstream.url, dialect: "vllm" }),
		chatModel({ id: "strict-model", url: upstream.url, extra: "    unsupported_parameters: reject" }),
		chatModel({ id: "old-model", url: upstream.url }).replace("[chat, completions]", "[completions]"),
	].join("\n"),
	limits: LIMITS,
});
const customer = await service.customer();

const messages = [{ role: "user" as const, content: "one two three" }];
const weather = {
	type: "function" as const,
	function: {
		name: "weather",
		description: "The weather.",
		parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
	},
};

const SDKS = [
	["openai 7.55", OpenAI7],
	["openai 6.49", OpenAI6 as unknown as typeof OpenAI7],
] as const;
// The versions differ only by additions, so the short run tests only the newest.
for (const [name, SDK] of LONG ? SDKS : SDKS.slice(0, 1)) {
	const connect = (apiKey = customer.secret, maxRetries = 0) => {
		const sent = { count: 0 };
		const client = new SDK({
			apiKey,
			baseURL: `${service.url}/v1`,
			maxRetries,
			fetch: (input, init) => {
				sent.count += 1;
				return fetch(input as string, init as RequestInit);
			},
		});
		return { client, chat: client.chat.completions, sent };
	};

	describe(`${name} with answers`, () => {
		test("reads a chat with usage, cost and request id", async () => {
			upstream.next(reply().text("Hello there.").usage({ prompt: 6, completion: 2, cached: 4 }));
			const answer = await connect().chat.create({ model: MODEL, messages, max_tokens: 50, temperature: 0.5 });
			expect(answer).toMatchObject({
				object: "chat.completion",
				model: MODEL,
				choices: [
					{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hello there.", refusal: null } },
				],
			});
			expect(answer.usage).toMatchObject({
				prompt_tokens: 6,
				completion_tokens: 2,
				total_tokens: 8,
				prompt_tokens_details: { cached_tokens: 4 },
			});
			expect((answer.usage as unknown as { cost: number }).cost).toBe((2 * 1_000 + 4 * 500 + 2 * 2_000) / 1e9);
			expect(answer._request_id).toMatch(/^req_[0-9a-f]{32}$/);
			expect(upstream.requests.at(-1)?.body).toEqual({
				model: "served-name",
				messages,
				temperature: 0.5,
				max_tokens: 50,
				stream: false,
			});
			expect(upstream.requests.at(-1)?.headers.get("authorization")).toBeNull();
		});

		test("runs tools up to the final answer, and each step is charged", async () => {
			const { accountId, secret } = await service.customer();
			for (const stream of [false, true]) {
				upstream.next(reply().toolCall("weather", { city: "Paris" }), reply().text("It is sunny."));
				const cities: string[] = [];
				const tool = {
					type: "function" as const,
					function: {
						...weather.function,
						parse: JSON.parse,
						function: ({ city }: { city: string }) => {
							cities.push(city);
							return "sunny";
						},
					},
				};
				const runner = connect(secret).chat.runTools({ model: MODEL, messages, tools: [tool], stream } as never);
				expect(await (runner as { finalContent(): Promise<string | null> }).finalContent()).toBe("It is sunny.");
				expect(cities).toEqual(["Paris"]);
				expect(upstream.requests.at(-1)?.body.messages).toMatchObject([
					{ role: "user" },
					{ role: "assistant", tool_calls: [{}] },
					{ role: "tool", content: "sunny" },
				]);
			}
			await service.settled();
			expect(await service.usage(accountId)).toHaveLength(4);
		});

		test("lists models, and retrieves a model whose id has a slash", async () => {
			const { client } = connect();
			const ids: string[] = [];
			for await (const model of client.models.list()) ids.push(model.id);
			expect(ids).toEqual([MODEL, "strict-model", "old-model"]);
			const model = await client.models.retrieve(MODEL);
			expect(model).toMatchObject({
				id: MODEL,
				object: "model",
				owned_by: "acme",
				context_length: 8192,
				max_output_tokens: 1024,
				pricing: { prompt: "0.000001", completion: "0.000002" },
				status: "connected",
			});
			expect(Number.isInteger(model.created)).toBe(true);
			for (const path of [`/v1/models/${MODEL}`, `/v1/models/${encodeURIComponent(MODEL)}`])
				expect(await (await service.get(path, customer.secret)).json()).toEqual(JSON.parse(JSON.stringify(model)));
		});

		test("is charged for the generated output after `break` or `abort()`", async () => {
			for (const how of ["break", "abort"]) {
				const { accountId, secret } = await service.customer();
				upstream.next(reply().text("a b c").stallAfter(2));
				const nth = upstream.requests.length + 1;
				const stream = await connect(secret).chat.create({ model: MODEL, messages, stream: true });
				for await (const chunk of stream) {
					if (chunk.choices[0]?.delta.content !== " b") continue;
					if (how === "break") break;
					stream.controller.abort();
				}
				await upstream.waitForAbort(nth);
				await service.settled();
				const [row] = await service.usage(accountId);
				expect([row?.ending, Number(row?.charged_nano_usd)]).toEqual(["client_left", priceOf(6, 2)]);
			}
		});
	});

	describe(`${name} with errors`, () => {
		async function thrown(work: Promise<unknown>) {
			const error = await work.then(
				() => undefined,
				(reason: unknown) => reason,
			);
			expect(error).toBeInstanceOf(SDK.APIError);
			const of = error as InstanceType<typeof SDK.APIError>;
			if (of.status !== undefined) expect(of.requestID).toMatch(/^req_[0-9a-f]{32}$/);
			return of;
		}
		const ask = (secret?: string, more: Record<string, unknown> = {}) =>
			thrown(connect(secret).chat.create({ model: MODEL, messages, ...more } as never));

		const long = [{ role: "user", content: "x".repeat(2 * 1024 * 1024) }];
		test.each<["BadRequestError" | "NotFoundError" | "APIError", Record<string, unknown>, object]>([
			["BadRequestError", { temperature: 5 }, { status: 400, code: "invalid_request", param: "temperature" }],
			["BadRequestError", { model: "strict-model", logit_bias: { 1: 1 } }, { code: "unsupported_parameter" }],
			["NotFoundError", { model: "gpt-5" }, { status: 404, code: "model_not_found", param: "model" }],
			["NotFoundError", { model: "old-model" }, { status: 404, code: "unsupported_mode", param: "model" }],
			["APIError", { messages: long }, { status: 413, code: "payload_too_large" }],
		])("throws %s for a wrong field", async (className, more, expected) => {
			const error = await ask(undefined, more);
			expect(error).toBeInstanceOf(SDK[className]);
			expect(error).toMatchObject(expected);
		});

		// Each code has one status, which decides the class; `gateway/errors` has all codes.
		test("throws 401, 402 and 403 with class and code, and does not retry", async () => {
			const before = upstream.requests.length;
			const poor = await service.customer({ exactCredit: 1_000_000 });
			const narrow = await service.key(customer.accountId, { models: ["old-model"] });
			for (const [secret, status, code, Class] of [
				["sk_service_wrong", 401, "invalid_api_key", SDK.AuthenticationError],
				[poor.secret, 402, "insufficient_quota", SDK.APIError],
				[narrow.secret, 403, "model_not_allowed", SDK.PermissionDeniedError],
			] as const) {
				const { chat, sent } = connect(secret, 3);
				const error = await thrown(chat.create({ model: MODEL, messages }));
				expect(error).toBeInstanceOf(Class);
				expect(error).toMatchObject({ status, code });
				expect([code, sent.count]).toEqual([code, 1]);
			}
			expect(upstream.requests.length).toBe(before);
			const options = { apiKey: "x", baseURL: `${service.url}/v1`, maxRetries: 0 };
			const bare = new SDK({ ...options, defaultHeaders: { Authorization: null } });
			const missing = { status: 401, code: "missing_api_key" };
			expect(await thrown(bare.chat.completions.create({ model: MODEL, messages }))).toMatchObject(missing);
		});

		test("throws RateLimitError for 429 and InternalServerError for 503", async () => {
			const limited = await service.key(customer.accountId, { requestsPerMinute: 1 });
			upstream.next(reply().text("ok"));
			await connect(limited.secret).chat.create({ model: MODEL, messages });
			const error = await ask(limited.secret);
			expect(error).toBeInstanceOf(SDK.RateLimitError);
			expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
			expect(Number(error.headers?.get("retry-after"))).toBeGreaterThan(0);
			upstream.next(reply().errorStatus(429));
			expect(await ask()).toMatchObject({ status: 503, code: "overloaded" });
		});

		test("throws InternalServerError for 502 and 504", async () => {
			for (const stream of [false, true]) {
				upstream.next(reply().errorStatus(500));
				const failed = await ask(undefined, { stream });
				expect(failed).toBeInstanceOf(SDK.InternalServerError);
				expect(failed).toMatchObject({ status: 502, code: "upstream_error" });
				upstream.next(reply().hang());
				expect(await ask(undefined, { stream })).toMatchObject({ status: 504, code: "upstream_timeout" });
			}
		});

		test("retries a busy model server, and is charged once", async () => {
			const { accountId, secret } = await service.customer();
			upstream.next(reply().errorStatus(500), reply().text("ok"));
			const { chat, sent } = connect(secret, 2);
			expect((await chat.create({ model: MODEL, messages })).choices[0]?.message.content).toBe("ok");
			expect(sent.count).toBe(2);
			await service.settled();
			expect((await service.usage(accountId)).map((row) => Number(row.charged_nano_usd)).sort()).toEqual([
				0,
				priceOf(6, 1),
			]);
		});

		test("throws the error of a stream after its output, with its code", async () => {
			upstream.next(reply().text("a b c").dieAfter(2));
			const stream = await connect().chat.create({ model: MODEL, messages, stream: true });
			let text = "";
			const error = await thrown(
				(async () => {
					for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
				})(),
			);
			expect(text).toBe("a b");
			expect(error).toMatchObject({ code: "upstream_error", type: "server_error" });
			expect(error.message).toContain("The model server failed to respond.");
		});
	});
}
