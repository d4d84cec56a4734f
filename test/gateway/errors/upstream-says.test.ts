/**
 * How a model server's error becomes the client's error, for every endpoint, status and JSON form, whole and streamed.
 */
import { expect, test } from "bun:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { deploymentsYaml, TARGETS, type Target } from "../../fuzz/targets.ts";
import { errorOf } from "../../support/chat.ts";
import { withService } from "../../support/service.ts";
import { withEndpoints } from "../../support/upstream-endpoints.ts";

const upstream = withEndpoints("openai");
/** Gives each model a second replica at the same server, so that one failure does not make the model unavailable. */
const twice = (yaml: string) =>
	yaml.replaceAll(
		/( {6}- url: .*)\n {8}model: (.*)\n {8}dialect: (.*)\n/g,
		"$&$1\n        model: other\n        dialect: $3\n",
	);
const service = await withService({
	models: twice(`${deploymentsYaml(upstream.url)}\n`),
	limits: "  breaker_failures_in_row: 1\n  breaker_cool_s: 60",
});

const TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 9000. sk-secret";
const json = (status: number, body: unknown, headers: Record<string, string> = {}) => {
	const packed = headers["content-encoding"];
	const text = typeof body === "string" ? body : JSON.stringify(body);
	const bytes = packed === "gzip" ? gzipSync(text) : packed === "br" ? brotliCompressSync(text) : text;
	return () => new Response(bytes, { status, headers: { "content-type": "application/json", ...headers } });
};
const sse =
	(body: unknown, field = "data") =>
	() =>
		new Response(`${field}: ${JSON.stringify(body)}\n\ndata: [DONE]\n\n`, {
			headers: { "content-type": "text/event-stream" },
		});
const said = (message: string, more: object = {}) => ({ error: { message, type: "x", code: 500, ...more } });

interface Case {
	readonly answer: () => Response;
	readonly expected: { status: number; code: string; retryAfter?: string; shouldRetry?: string; calls: number };
	/**
	 * True if the error does not count against the server's health, so that the customer's next request is sent to it.
	 */
	readonly neutral: boolean;
	readonly onlyStreamed?: true;
}

const tooLong = (answer: Case["answer"], more: { onlyStreamed?: true } = {}): Case => ({
	answer,
	expected: { status: 400, code: "context_length_exceeded", calls: 1 },
	neutral: true,
	...more,
});
const busy = (retryAfter: string, answer: Case["answer"], neutral = true): Case => ({
	answer,
	expected: { status: 503, code: "overloaded", retryAfter, calls: 2 },
	neutral,
});
const unpaid = (answer: Case["answer"]): Case => ({
	answer,
	expected: { status: 503, code: "service_unavailable", shouldRetry: "false", calls: 2 },
	neutral: false,
});

const CASES: Readonly<Record<string, Case>> = {
	"too long, with status 400": tooLong(json(400, said(TOO_LONG))),
	"too long, with status 500": tooLong(json(500, said(TOO_LONG))),
	"too long, with status 503, flat": tooLong(json(503, { object: "error", message: TOO_LONG, code: 503 })),
	"too long, as plain text": tooLong(json(500, TOO_LONG, { "content-type": "text/plain" })),
	"too long for a batch of llama.cpp": tooLong(
		json(500, said("input is too large to process. increase the batch size")),
	),
	"too long, in a list": tooLong(
		json(400, [said("exceeds the maximum number of tokens allowed", { status: "INVALID" })]),
	),
	"too long, inside the error of another": tooLong(json(502, said(`upstream: ${JSON.stringify(said(TOO_LONG))}`))),
	"too long, gzip": tooLong(json(500, said(TOO_LONG), { "content-encoding": "gzip" })),
	"too long, brotli": tooLong(json(400, said(TOO_LONG), { "content-encoding": "br" })),
	"too long, in a 200": tooLong(json(200, said(TOO_LONG))),
	"too long, flat in a 200": tooLong(json(200, { message: TOO_LONG, type: "x", code: 500 })),
	"too long, in an event": tooLong(sse(said(TOO_LONG)), { onlyStreamed: true }),
	"too long, flat in an event": tooLong(sse({ message: TOO_LONG, code: 400 }), { onlyStreamed: true }),
	"too long, in an event of an older llama.cpp": tooLong(sse(said(TOO_LONG).error, "error"), { onlyStreamed: true }),
	"busy, with seconds": busy("7", json(429, said("slow down"), { "retry-after": "6.2" })),
	"busy for too long": busy("60", json(429, said("slow down"), { "retry-after": "7200" })),
	"busy without a time": busy("2", json(429, said("slow down"))),
	"not ready, with a date": busy(
		"30",
		json(503, "", { date: "Sun, 29 Nov 2026 08:00:00 GMT", "retry-after": "Sun, 29 Nov 2026 08:00:30 GMT" }),
		false,
	),
	"overloaded (529)": busy("2", json(529, said("overloaded"))),
	"busy, in a 200": busy("2", json(200, said("slow down", { code: 429 }))),
	"overloaded, in a 200": busy("2", json(200, said("x", { type: "overloaded_error", code: null }))),
	"unpaid, with status 429": unpaid(json(429, said("x", { type: "insufficient_quota" }), { "retry-after": "1" })),
	"unpaid, as text of a 429": unpaid(json(429, said("You exceeded your current quota, please check your plan."))),
	"unpaid, with status 402": unpaid(json(402, said("Insufficient credits"))),
	"unpaid, with status 400": unpaid(json(400, said("x", { code: "billing_hard_limit_reached" }))),
	"unpaid, in a 200": unpaid(json(200, said("x", { code: "insufficient_quota" }))),
	"wrong key": unpaid(json(401, said("no such key"))),
	"unknown model": unpaid(json(404, said("no such model"))),
	"a redirect": unpaid(json(302, "", { location: "http://127.0.0.1:1/" })),
};

const PARAMS: Readonly<Record<string, string>> = {
	"/v1/chat/completions": "messages",
	"/v1/completions": "prompt",
	"/v1/embeddings": "input",
	"/v1/rerank": "documents",
	"/v1/images/generations": "prompt",
	"/v1/audio/transcriptions": "prompt",
};

const send = ({ path, request }: Target, secret: string) => service.post(path, secret, request());

async function refusals(model: string): Promise<number> {
	const text = await (await service.get("/metrics")).text();
	const of = text.matchAll(new RegExp(`^tollgate_replica_refusals_total{replica="${model}#.*} (\\d+)$`, "gm"));
	return [...of].reduce((sum, [, count]) => sum + Number(count), 0);
}

test.each(TARGETS.map((target) => [target.name, target] as const))(
	"%s maps server errors to client errors",
	async (name, target) => {
		const { accountId, secret } = await service.customer();
		for (const [what, { answer, expected, neutral, onlyStreamed }] of Object.entries(CASES)) {
			if (onlyStreamed && !name.endsWith("streamed")) continue;
			const customer = neutral ? secret : (await service.customer()).secret;
			const [calls, refused] = [upstream.requests.length, await refusals(target.model)];
			upstream.next(answer, ...(expected.calls === 2 ? [answer] : []));
			const { status, error, headers } = await errorOf(await send(target, customer));
			expect({
				what,
				status,
				code: error.code,
				retryAfter: headers.get("retry-after"),
				shouldRetry: headers.get("x-should-retry"),
				calls: upstream.requests.length - calls,
				param: error.param,
				refused: (await refusals(target.model)) - refused,
			}).toEqual({
				what,
				retryAfter: null,
				shouldRetry: null,
				param: expected.status === 400 ? (PARAMS[target.path] ?? "") : null,
				refused: expected.code === "service_unavailable" ? 2 : 0,
				...expected,
			});
			expect(error.message).not.toContain("secret");
			if (!neutral) continue;
			const { body, contentType } = target.answer(undefined);
			upstream.next(() => new Response(body, { headers: { "content-type": contentType } }));
			expect([what, (await send(target, customer)).status]).toEqual([what, 200]);
		}
		await service.settled();
		const failed = (await service.usage(accountId)).filter(({ status }) => status !== 200);
		expect(failed.map(({ charged_nano_usd: charged }) => Number(charged))).toEqual(failed.map(() => 0));
	},
);
