import { newRequestId } from "../base/id.ts";
import type { Cors } from "../catalog/cors.ts";
import { RATE_HEADERS, SERVED_MODEL_HEADER } from "./headers.ts";

type Answer = (request: Request) => Response | Promise<Response>;

const PREFLIGHT_S = 24 * 60 * 60;
const EXPOSED = ["x-request-id", "x-ignored-parameters", SERVED_MODEL_HEADER, "retry-after", ...RATE_HEADERS].join(
	", ",
);

/**
 * Adds CORS headers, with which pages of the allowed origins can read answers of `/v1/`, errors included. Not for the
 * management interface. Any origin may be allowed, because keys are bearer tokens and no answer depends on cookies.
 * Requests without `Origin` are unchanged.
 */
export function createCors(answer: Answer, allowed: () => Cors): Answer {
	return (request) => {
		const origin = request.headers.get("origin");
		if (origin === null) return answer(request);
		const { pathname } = new URL(request.url);
		if (!pathname.startsWith("/v1/") || pathname.startsWith("/v1/management/")) return answer(request);
		const cors = allowed();
		if (cors !== "*" && !cors.has(origin)) return answer(request);
		return allowedAnswer(answer, request, cors === "*" ? cors : origin);
	};
}

/** A separate function, so that requests without `Origin` allocate no closure. `origin` may be `*`. */
function allowedAnswer(answer: Answer, request: Request, origin: string): Response | Promise<Response> {
	const allow = (response: Response) => {
		response.headers.set("access-control-allow-origin", origin);
		if (origin !== "*") response.headers.append("vary", "origin");
		return response;
	};
	if (request.method === "OPTIONS" && request.headers.has("access-control-request-method"))
		return allow(preflightAnswer(request));
	const answered = answer(request);
	const expose = (response: Response) => {
		response.headers.set("access-control-expose-headers", EXPOSED);
		return allow(response);
	};
	return answered instanceof Promise ? answered.then(expose) : expose(answered);
}

/** Allows every requested header, because SDKs send their own (`x-stainless-…`). */
function preflightAnswer({ headers: requested }: Request): Response {
	const headers = new Headers({
		"access-control-allow-methods": "GET, POST, DELETE",
		"access-control-max-age": String(PREFLIGHT_S),
		"x-request-id": newRequestId().requestId,
	});
	const names = requested.get("access-control-request-headers");
	if (names !== null) headers.set("access-control-allow-headers", names);
	return new Response(null, { status: 204, headers });
}
