import { describe, expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";

const APP = "https://app.example.com";
const upstream = withUpstream();
const models = chatModel({ url: upstream.url });
const service = await withService({ models });
const { secret } = await service.customer({ settings: { requestsPerMinute: 100_000 } });

const EXPOSED =
	"x-request-id, x-ignored-parameters, x-served-model, retry-after, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens";
const CORS_HEADERS = /^access-control-|^vary$/;
const corsOf = ({ headers }: Response) => Object.fromEntries([...headers].filter(([name]) => CORS_HEADERS.test(name)));

const bearer = { authorization: `Bearer ${secret}` };
const post = (body: object) => ({
	method: "POST",
	headers: { ...bearer, "content-type": "application/json" },
	body: JSON.stringify(body),
});
/** Requests for each kind of answer, with the expected status. */
const ANSWERS: readonly (readonly [string, string, RequestInit, number])[] = [
	["a whole answer", "/v1/chat/completions", post(ask()), 200],
	["a stream", "/v1/chat/completions", post(ask("hi", { stream: true })), 200],
	["a list", "/v1/models", { headers: bearer }, 200],
	["a refused key", "/v1/models", {}, 401],
	["a refused body", "/v1/chat/completions", post({}), 400],
	["an unknown path", "/v1/nothing", { headers: bearer }, 404],
	["a wrong method", "/v1/models", { method: "DELETE", headers: bearer }, 405],
];
const CONSOLE: readonly (readonly [string, string, RequestInit])[] = [
	["the console", "/", {}],
	["the console's interface", "/api/session", {}],
	["the management interface", "/v1/management/accounts", {}],
	["the status", "/status", {}],
	["a path before /v1", "/chat/completions", post(ask())],
];
const preflight = (path: string, origin = APP) =>
	fetch(`${service.url}${path}`, {
		method: "OPTIONS",
		headers: {
			origin,
			"access-control-request-method": "POST",
			"access-control-request-headers": "authorization,content-type,x-stainless-os",
		},
	});

/** Setting `cors:`, origin of the page, expected `access-control-allow-origin`. */
const SETTINGS: readonly (readonly [string | undefined, string, string | undefined])[] = [
	[undefined, APP, "*"],
	['"*"', "null", "*"],
	[`["http://localhost:3000", "${APP}"]`, APP, APP],
	[`["${APP}"]`, `${APP}.evil.example`, undefined],
	[`["${APP}"]`, "null", undefined],
	["off", APP, undefined],
];

describe.each(SETTINGS)("with `cors: %s`, a web page of origin %s", (cors, origin, allowed) => {
	const vary = allowed === undefined || allowed === "*" ? {} : { vary: "origin" };
	const allow = allowed === undefined ? {} : { "access-control-allow-origin": allowed };

	test("may read every kind of answer or no answer, as the setting says", async () => {
		await service.serve(`${models}${cors === undefined ? "" : `\ncors: ${cors}`}`);
		for (const [name, path, init, status] of ANSWERS) {
			const response = await fetch(`${service.url}${path}`, { ...init, headers: { ...init.headers, origin } });
			await response.text();
			const exposed = allowed === undefined ? {} : { "access-control-expose-headers": EXPOSED };
			expect([name, response.status, corsOf(response)]).toEqual([name, status, { ...allow, ...exposed, ...vary }]);
			const plain = await fetch(`${service.url}${path}`, init);
			await plain.text();
			expect([name, plain.status, corsOf(plain)]).toEqual([name, status, {}]);
		}
		for (const [name, path, init] of CONSOLE) {
			const response = await fetch(`${service.url}${path}`, { ...init, headers: { ...init.headers, origin } });
			await response.text();
			expect([name, response.headers.get("access-control-allow-origin")]).toEqual([name, null]);
		}
	});

	test("gets an answer to a preflight request without a key", async () => {
		const response = await preflight("/v1/chat/completions", origin);
		if (allowed === undefined) {
			expect([response.status, corsOf(response)]).toEqual([405, {}]);
			return;
		}
		expect([response.status, corsOf(response)]).toEqual([
			204,
			{
				...allow,
				...vary,
				"access-control-allow-methods": "GET, POST, DELETE",
				"access-control-allow-headers": "authorization,content-type,x-stainless-os",
				"access-control-max-age": "86400",
			},
		]);
		expect(response.headers.get("x-request-id")).toMatch(/^req_/);
		expect((await preflight("/api/session", origin)).headers.has("access-control-allow-origin")).toBe(false);
	});
});
