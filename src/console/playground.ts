import { languageOf } from "../base/language.ts";
import { passedBody } from "../base/passed-body.ts";
import type { Connection } from "../gateway/connection.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../gateway/connection.ts";
import type { Parts } from "./console-deps.ts";
import { usableDigest } from "./keys/usable-keys.ts";

const CHAT = "/v1/chat/completions";
/** What of an answer reaches the page. */
const HEADERS = ["content-type", "retry-after", "x-request-id", "x-ignored-parameters", "x-accel-buffering"];

/**
 * POST /api/console/playground/chat?key=…: a chat in the name of one of the account's own keys, billed to it and bound by
 * its cap, allowlist and limits. A gateway serves it, the public interface's whole way; only the secret, which nobody has
 * any more, is replaced by a token that names the key's digest for this one path and a minute. This process admits
 * nothing and holds no credit: it has found out who asks, and passes on what a gateway answers.
 */
export async function playgroundChat(
	parts: Parts<"statements" | "gateways" | "sessions">,
	connection: Connection,
): Promise<Response> {
	const { request } = connection;
	const allowed = parts.sessions.allow(request, "requests.send");
	const keyDigest = await usableDigest(parts, allowed, new URL(request.url).searchParams.get("key") ?? "");
	const leave = new AbortController();
	// One that has left while it was found out who asks is not heard of any more.
	if (request.signal.aborted) leave.abort();
	else request.signal.addEventListener("abort", () => leave.abort(), { once: true });
	const body = await request.arrayBuffer();
	// A model may think for long before its first word; the gateway has the deadlines.
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
