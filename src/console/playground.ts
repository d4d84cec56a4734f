import { languageOf } from "../base/language.ts";
import { passedBody } from "../base/passed-body.ts";
import { type Connection, IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../gateway/connection.ts";
import type { Parts } from "./console-deps.ts";
import { usableDigest } from "./keys/usable-keys.ts";

const CHAT = "/v1/chat/completions";
const HEADERS = ["content-type", "retry-after", "x-request-id", "x-ignored-parameters", "x-accel-buffering"];

/**
 * POST /api/console/playground/chat?key=…: a chat in the name of one of the account's keys, charged to it and bound by
 * its cap, allowlist and limits. A gateway serves it like any public request. As no process has the secret, a token
 * replaces it: it names the key's digest, for this path and one minute. The console admits nothing and holds no credit:
 * it authenticates the person and forwards the response.
 */
export async function playgroundChat(
	parts: Parts<"statements" | "gateways" | "sessions">,
	connection: Connection,
): Promise<Response> {
	const { request } = connection;
	const allowed = parts.sessions.allow(request, "requests.send");
	const keyDigest = await usableDigest(parts, allowed, new URL(request.url).searchParams.get("key") ?? "");
	const leave = new AbortController();
	// If the client left during the authentication, no abort event follows.
	if (request.signal.aborted) leave.abort();
	else request.signal.addEventListener("abort", () => leave.abort(), { once: true });
	const body = await request.arrayBuffer();
	// A model may take long to its first token; the gateway has the deadlines.
	connection.setIdleTimeout(0);
	const over = () => connection.setIdleTimeout(IDLE_TIMEOUT_S);
	const asked = parts.gateways.send({
		keyDigest,
		method: "POST",
		path: CHAT,
		contentType: "application/json",
		accept: request.headers.get("accept") ?? "*/*",
		body,
		address: connection.address,
		language: languageOf(request.headers),
		signal: leave.signal,
	});
	const answer = await asked.catch((error: unknown) => {
		over();
		throw error;
	});
	const headers = new Headers();
	for (const name of HEADERS) {
		const value = answer.headers.get(name);
		if (value !== null) headers.set(name, value);
	}
	if (answer.body === null) over();
	else connection.setIdleTimeout(STREAM_TIMEOUT_S);
	const events = answer.body && passedBody(answer.body, over);
	return new Response(events, { status: answer.status, headers });
}
