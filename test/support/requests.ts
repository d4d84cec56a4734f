import { openRaw, type RawClient, rawPost } from "./raw-http.ts";

const CHAT = "/v1/chat/completions";

/** Requests to the service at this address, as a customer sends them. */
export function requestsTo(url: string) {
	/** Posts JSON, a text unchanged, or a form. */
	function post(path: string, secret: string | undefined, body: unknown, init: RequestInit = {}): Promise<Response> {
		const isForm = body instanceof FormData;
		const headers = {
			...(isForm ? {} : { "content-type": "application/json" }),
			...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
			...(init.headers as Record<string, string>),
		};
		const sent = isForm || typeof body === "string" ? body : JSON.stringify(body);
		return fetch(`${url}${path}`, { method: "POST", body: sent, ...init, headers });
	}
	return {
		post,
		chat: (secret: string | undefined, body: unknown, init?: RequestInit) => post(CHAT, secret, body, init),
		/** Sends a chat on a socket of its own. */
		openChat: (secret: string, body: unknown, headers?: Record<string, string>): Promise<RawClient> =>
			openRaw(url, rawPost(CHAT, secret, body, headers)),
		get: (path: string, secret?: string): Promise<Response> =>
			fetch(`${url}${path}`, { headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` } }),
	};
}
