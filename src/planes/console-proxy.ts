import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { forwardBody } from "../base/passed-body.ts";
import { waitForTurn } from "../base/time-slice.ts";
import { cameThroughProxy, PASSED_ON_HEADER } from "../gateway/client-address.ts";
import { ANONYMOUS_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S, UNREAD_TIMEOUT_S } from "../gateway/connection.ts";
import { errorResponse } from "../gateway/error-body.ts";
import { notOfferedText } from "../gateway/routes.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";
import { MANAGEMENT_PREFIX } from "../management/management-routes.ts";
import awayPage from "./console-away.html" with { type: "text" };
import { createConsoleRequestLimit } from "./console-request-limit.ts";

/** Page that a gateway shows while no console runs. The page reloads itself. */
const AWAY_PAGE = String(awayPage);

/** Forwards a gateway's page requests to the console process. */
export type ConsoleProxy = ReturnType<typeof createConsoleProxy>;

const AWAY_RETRY_S = 2;
/** Style of this page, which its content security policy allows by hash. */
const AWAY_STYLE = /<style>(.*)<\/style>/s.exec(AWAY_PAGE)?.[1] ?? "";
const AWAY_POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(AWAY_STYLE).digest("base64")}'`,
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");

/** Assumed CPU time for forwarding a request, in ms. */
const PASS_MS = 0.25;
const TRIES_MAX = 6;
const TRY_AGAIN_MS = 20;
/** At most one warning is logged per interval. */
const QUIET_MS = 1_000;
/** Largest body; playground chats with pictures and batch files have the larger limit. */
const BODY_BYTES_MAX = 1024 * 1024;
const LARGE_BYTES_MAX = 32 * 1024 * 1024;
const CHAT_PATH = "/api/console/playground/chat";
const BATCH_PATH = "/api/console/batch-start";
/** Longer than any page takes; the check of the books takes longest. */
const SILENCE_S = 90;
/** Hop-by-hop headers, and headers with which a client could fake its address. */
const NOT_PASSED_ON =
	/^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|forwarded|x-forwarded-.*|x-real-ip|x-tollgate-.*)$/;
const NOT_PASSED_BACK = ["connection", "keep-alive", "transfer-encoding"];

/**
 * Forwards requests to the console through a Unix socket. Sets `x-forwarded-for`, which the console trusts only on this
 * socket. Each request opens a new connection, because a reused one could lead to a console that is stopping.
 */
export function createConsoleProxy({ log }: { log: Log }, options: { socket: string }) {
	const requestLimit = createConsoleRequestLimit();
	let problem: string | undefined;
	let quietUntilMs = 0;

	function ask(connection: Connection, leave: AbortController): Promise<Response> {
		const { request } = connection;
		const url = new URL(request.url);
		return fetch(`http://${url.host}${url.pathname}${url.search}`, {
			unix: options.socket,
			method: request.method,
			headers: headersFor(connection),
			// Keeps the declared length, so that the console can refuse a body before it is read.
			...(request.body === null ? {} : { body: request.body, duplex: "half" }),
			signal: leave.signal,
			redirect: "manual",
			decompress: false,
			keepalive: false,
			timeout: false,
			proxy: false,
		} as BunFetchRequestInit);
	}

	/** Repeats a request without a body while the console's accept queue is full. */
	async function askAgain(connection: Connection, leave: AbortController): Promise<Response> {
		for (let tries = 1; ; tries += 1) {
			try {
				return await ask(connection, leave);
			} catch (error) {
				const isBusy = (error as { code?: unknown }).code === "EAGAIN";
				if (!isBusy || tries === TRIES_MAX || connection.request.body !== null) throw error;
				await Bun.sleep(TRY_AGAIN_MS * tries);
			}
		}
	}

	async function pass(connection: Connection): Promise<Response> {
		const { request } = connection;
		checkBody(request);
		const turn = waitForTurn(addressNetwork(connection.address), PASS_MS);
		if (turn !== undefined) await turn;
		const leave = new AbortController();
		const onAbort = () => leave.abort();
		const giveUp = (why: Fault) => leave.abort(why);
		const free = requestLimit.enter(connection, giveUp);
		let read = () => {};
		if (request.signal.aborted) leave.abort();
		else request.signal.addEventListener("abort", onAbort, { once: true });
		// No idle timeout for a chat: a model may take long until its first token.
		connection.setIdleTimeout(isChat(request) ? 0 : SILENCE_S);
		let ended = false;
		let idleS = ANONYMOUS_TIMEOUT_S;
		const end = () => {
			if (ended) return;
			ended = true;
			free();
			read();
			request.signal.removeEventListener("abort", onAbort);
			connection.setIdleTimeout(idleS);
		};
		try {
			const response = await askAgain(connection, leave);
			problem = undefined;
			// Browsers connect again by themselves; programs with a management key may lose a request.
			if (response.ok && new URL(request.url).pathname.startsWith(MANAGEMENT_PREFIX)) idleS = IDLE_TIMEOUT_S;
			const headers = new Headers(response.headers);
			// Without a length it is a live page or a stream, of which the runtime holds one piece.
			const bytes = headers.get("content-length");
			connection.setIdleTimeout(bytes === null ? SILENCE_S : UNREAD_TIMEOUT_S);
			read = requestLimit.answer(connection, Number(bytes), giveUp);
			for (const name of NOT_PASSED_BACK) headers.delete(name);
			const body = response.body === null ? null : forwardBody(response.body, end, leave.signal);
			if (body === null) end();
			return new Response(body, { status: response.status, headers });
		} catch (error) {
			end();
			if (error instanceof Fault) leave.abort(error);
			if (leave.signal.reason instanceof Fault) throw leave.signal.reason;
			if (!leave.signal.aborted) {
				problem = "the console does not answer";
				const nowMs = performance.now();
				if (nowMs >= quietUntilMs) {
					quietUntilMs = nowMs + QUIET_MS;
					log.warn("the console did not answer", { error });
				}
			}
			return awayResponse(request);
		}
	}

	return {
		async handle(connection: Connection): Promise<Response> {
			try {
				return await pass(connection);
			} catch (error) {
				if (error instanceof Fault) return errorResponse(error, newRequestId().requestId);
				throw error;
			}
		},
		/** Why the last request to the console failed; undefined if it succeeded. */
		problem: () => problem,
	};
}

/** Proxy of a gateway whose console runs elsewhere: answers pages with an error. */
export const noConsoleProxy: ConsoleProxy = {
	handle: async ({ request }) => {
		const { pathname } = new URL(request.url);
		const isManagement = pathname.startsWith(MANAGEMENT_PREFIX);
		const text = isManagement ? "The management interface is served by the console." : notOfferedText(pathname);
		return errorResponse(new Fault("not_found", text), newRequestId().requestId);
	},
	problem: () => undefined,
};

function headersFor({ request, address }: Connection): Headers {
	const headers = new Headers();
	const named = (request.headers.get("connection") ?? "")
		.toLowerCase()
		.split(",")
		.map((name) => name.trim());
	for (const [name, value] of request.headers) {
		if (!NOT_PASSED_ON.test(name) && !named.includes(name)) headers.append(name, value);
	}
	headers.set("x-forwarded-for", address);
	if (cameThroughProxy(request.headers, address)) headers.set(PASSED_ON_HEADER, "yes");
	return headers;
}

/** Refuses bodies that are larger than the console accepts. */
function checkBody(request: Request): void {
	if (request.body === null) return;
	const length = request.headers.get("content-length");
	if (!/^\d{1,15}$/.test(length ?? ""))
		throw new Fault("invalid_request", "The request needs a Content-Length header.");
	const isLarge = isChat(request) || new URL(request.url).pathname === BATCH_PATH;
	if (Number(length) > (isLarge ? LARGE_BYTES_MAX : BODY_BYTES_MAX))
		throw new Fault("payload_too_large", "The request is too large.");
}

const isChat = (request: Request): boolean => new URL(request.url).pathname === CHAT_PATH;

function awayResponse(request: Request): Response {
	const { requestId } = newRequestId();
	const wantsHtml = request.headers.get("accept")?.includes("text/html") ?? false;
	if (wantsHtml && (request.method === "GET" || request.method === "HEAD")) return consoleAwayPage(requestId);
	const fault = new Fault("service_unavailable", "The console is restarting. Inference is not affected.", {
		retryAfterS: 2,
	});
	return errorResponse(fault, requestId);
}

function consoleAwayPage(requestId: string): Response {
	return new Response(AWAY_PAGE, {
		status: 503,
		headers: {
			"content-type": "text/html; charset=utf-8",
			"cache-control": "no-store",
			"content-security-policy": AWAY_POLICY,
			"referrer-policy": "no-referrer",
			"retry-after": String(AWAY_RETRY_S),
			"x-content-type-options": "nosniff",
			"x-frame-options": "DENY",
			"x-request-id": requestId,
		},
	});
}
