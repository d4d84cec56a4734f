import { requestLanguage } from "../base/language.ts";
import { forwardBody } from "../base/passed-body.ts";
import { type Connection, IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../gateway/connection.ts";
import type { Parts } from "./console-deps.ts";
import { usableKeyDigest } from "./keys/key-routes.ts";

export const CHAT_BYTES_MAX = 32 * 1024 * 1024;
const CHAT = "/v1/chat/completions";
const HEADERS = ["content-type", "retry-after", "x-request-id", "x-ignored-parameters", "x-accel-buffering"];

/**
 * POST /api/console/playground/chat?key=…: a chat with a key of the account, subject to that key's charges, cap,
 * allowed models and limits. No process knows the key's secret, so the console sends the gateway a token with the key's
 * digest, valid for this path and one minute. The gateway's response is passed on.
 */
export async function playgroundChat(
	parts: Parts<"statements" | "limiter" | "gateways" | "sessions">,
	connection: Connection,
) {
	const { request } = connection;
	const allowed = parts.sessions.allow(request, "requests.send");
	const keyDigest = await usableKeyDigest(parts, allowed, new URL(request.url).searchParams.get("key") ?? "");
	const leave = new AbortController();
	// A client that disconnected during authentication causes no later `abort` event, so this checks once.
	if (request.signal.aborted) leave.abort();
	else request.signal.addEventListener("abort", () => leave.abort(), { once: true });
	const over = () => connection.setIdleTimeout(IDLE_TIMEOUT_S);
	const asked = parts.limiter.withBytes(connection, { owner: allowed.accountId, bytesMax: CHAT_BYTES_MAX }, (body) => {
		// No idle timeout: a model may take long, and the gateway enforces the deadlines.
		connection.setIdleTimeout(0);
		return parts.gateways.send({
			keyDigest,
			method: "POST",
			path: CHAT,
			contentType: "application/json",
			accept: request.headers.get("accept") ?? "*/*",
			body,
			address: connection.address,
			language: requestLanguage(request.headers),
			signal: leave.signal,
		});
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
	return new Response(answer.body && forwardBody(answer.body, over), { status: answer.status, headers });
}
