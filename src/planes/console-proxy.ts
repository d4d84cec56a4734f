import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { isAbsent, passedBody } from "../base/passed-body.ts";
import { isPassedOn, PASSED_ON_HEADER } from "../gateway/client-address.ts";
import type { Connection } from "../gateway/connection.ts";
import { IDLE_TIMEOUT_S } from "../gateway/connection.ts";
import { errorResponse } from "../gateway/error-body.ts";
import { notOfferedText } from "../gateway/not-offered.ts";
import { MANAGEMENT_PREFIX } from "../management/management-routes.ts";

/** Where a gateway sends what is not for programs. */
export interface ConsoleProxy {
	handle(connection: Connection): Promise<Response>;
	/** Why the console could not be asked the last time; undefined if it could. */
	problem(): string | undefined;
}

/** What people see while the console's process is away. It asks again by itself. */
const AWAY_STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
	background: light-dark(#fff, #15181b); color: light-dark(#1f2328, #d5d9dd); }
body { max-width: 34rem; margin: 20vh auto 0; padding: 0 1rem; }
h1 { font-size: 1.35rem; margin: 0 0 .5rem; }
p { margin: 0 0 .5rem; color: light-dark(#586069, #9aa4ad); }
a { color: light-dark(#17637f, #7bb9d0); }
`;
const AWAY_POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(AWAY_STYLE).digest("base64")}'`,
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");
const AWAY_RETRY_S = 2;

const AWAY_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${AWAY_RETRY_S}">
<title>The console is restarting</title>
<style>${AWAY_STYLE}</style>
</head>
<body>
<h1>The console is restarting</h1>
<p>This page asks again by itself. Inference is not affected: requests with an API key are answered as ever.</p>
<p><a href="/status">Status of the service</a></p>
</body>
</html>
`;

/** Live pages among them, each of which has one open for minutes. */
const REQUESTS_MAX = 4_096;
/** Nothing that a page sends is larger but a chat of the playground, which may hold pictures, and a batch's file. */
const BODY_BYTES_MAX = 1024 * 1024;
const LARGE_BYTES_MAX = 32 * 1024 * 1024;
const CHAT_PATH = "/api/console/playground/chat";
const BATCH_PATH = "/api/console/batch-start";
/** The longest that the console keeps a page waiting, for a check of the books, and some. */
const SILENCE_S = 90;
/** So long a request waits for a console that is just starting: about what it takes to be there again. */
const START_WAIT_MS = 2_000;
const START_POLL_MS = 50;

/** They speak of one connection, or a client could say by them who it is. */
const NOT_PASSED_ON =
	/^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|forwarded|x-forwarded-.*|x-real-ip|x-tollgate-.*)$/;
const NOT_PASSED_BACK = ["connection", "keep-alive", "transfer-encoding"];

/**
 * Passes requests on to the console's process at a Unix socket, streaming both ways. The client's address goes along as
 * `x-forwarded-for`, which the console believes from this socket alone; what the client itself says of it does not.
 * A connection each: a kept one could meet a console that is just leaving.
 */
export function createConsoleProxy(deps: { clock: Clock; log: Log }, options: { socket: string }): ConsoleProxy {
	const { clock, log } = deps;
	let open = 0;
	let problem: string | undefined;

	async function ask(connection: Connection, leave: AbortController): Promise<Response> {
		const { request } = connection;
		const url = new URL(request.url);
		const until = clock.monotonicMs() + START_WAIT_MS;
		for (;;) {
			try {
				return await fetch(`http://${url.host}${url.pathname}${url.search}`, {
					unix: options.socket,
					method: request.method,
					headers: headersFor(connection),
					// A length that is given is kept, so that the console can judge it before it reads.
					...(request.body === null ? {} : { body: request.body, duplex: "half" }),
					signal: leave.signal,
					redirect: "manual",
					decompress: false,
					keepalive: false,
					timeout: false,
					proxy: false,
				} as BunFetchRequestInit);
			} catch (error) {
				// Nobody was there to take it: nothing was sent. A body can be sent only once all the same.
				const again = isAbsent(error) && request.body === null && clock.monotonicMs() < until;
				if (!again || leave.signal.aborted) throw error;
				await Bun.sleep(START_POLL_MS);
			}
		}
	}

	async function pass(connection: Connection): Promise<Response> {
		const { request } = connection;
		checkBody(request);
		const leave = new AbortController();
		const onAbort = () => leave.abort();
		if (request.signal.aborted) leave.abort();
		else request.signal.addEventListener("abort", onAbort, { once: true });
		// A model may think for long before its first word.
		connection.setIdleTimeout(isChat(request) ? 0 : SILENCE_S);
		open += 1;
		let ended = false;
		const end = () => {
			if (ended) return;
			ended = true;
			open -= 1;
			request.signal.removeEventListener("abort", onAbort);
			connection.setIdleTimeout(IDLE_TIMEOUT_S);
		};
		try {
			const response = await ask(connection, leave);
			problem = undefined;
			connection.setIdleTimeout(SILENCE_S);
			const headers = new Headers(response.headers);
			for (const name of NOT_PASSED_BACK) headers.delete(name);
			const body = response.body === null ? null : passedBody(response.body, end);
			if (body === null) end();
			return new Response(body, { status: response.status, headers });
		} catch (error) {
			end();
			if (!leave.signal.aborted) {
				problem = "the console does not answer";
				log.warn("the console did not answer", { error });
			}
			return awayResponse(request);
		}
	}

	return {
		async handle(connection) {
			try {
				if (open >= REQUESTS_MAX) throw new Fault("overloaded", "Too many pages are open.", { retryAfterS: 10 });
				return await pass(connection);
			} catch (error) {
				if (error instanceof Fault) return errorResponse(error, newRequestId().requestId);
				throw error;
			}
		},
		problem: () => problem,
	};
}

/** For a gateway without a console beside it: people's pages are elsewhere. */
export const noConsole: ConsoleProxy = {
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
	if (isPassedOn(request.headers, address)) headers.set(PASSED_ON_HEADER, "yes");
	return headers;
}

/** What the console would refuse anyway must not be carried to it first. */
function checkBody(request: Request): void {
	if (request.body === null) return;
	const length = request.headers.get("content-length");
	if (!/^\d{1,15}$/.test(length ?? "")) throw new Fault("invalid_request", "A length is required.");
	const isLarge = isChat(request) || new URL(request.url).pathname === BATCH_PATH;
	if (Number(length) > (isLarge ? LARGE_BYTES_MAX : BODY_BYTES_MAX))
		throw new Fault("payload_too_large", "The request is too large.");
}

function isChat(request: Request): boolean {
	return new URL(request.url).pathname === CHAT_PATH;
}

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
