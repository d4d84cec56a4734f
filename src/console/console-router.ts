import { Elysia } from "elysia";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { isLanguage, requestLanguage } from "../base/language.ts";
import { type CardPayments, EVENT_BYTES_MAX } from "../billing/card-payments.ts";
import type { Config } from "../config.ts";
import type { Connection } from "../gateway/connection.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";
import { BATCH_INPUT_BYTES_MAX, batchFileId, downloadBatchFile, startBatch } from "./batches/batch-routes.ts";
import type { ConsoleApi } from "./console-api.ts";
import type { Parts } from "./console-deps.ts";
import { ConsoleError, consoleErrorResponse } from "./console-error.ts";
import { sessionRequired } from "./console-session.ts";
import { compressResponse } from "./pages/gzip.ts";
import { CHAT_BYTES_MAX, playgroundChat } from "./playground.ts";
import { securityHeaders } from "./security-headers.ts";
import { rethrowAnswerError, rethrowExpected } from "./sign-in/auth.ts";
import { deviceOf } from "./sign-in/auth-device.ts";
import { ADDRESS_HEADER, assertShortTexts } from "./sign-in/auth-request.ts";
import { SIGN_IN_LINK } from "./sign-in/new-sign-in-link.ts";
import { translateSignIn } from "./sign-in/sign-in-error.ts";
import { openSignInLink } from "./sign-in/sign-in-link.ts";
import { type Membership, readMemberships, type Viewer, viewedAccount } from "./viewer.ts";

/** Longest duration of a company session. Afterwards the company's provider must confirm the person again. */
const COMPANY_SESSION_MS = 12 * 3_600_000;
const BODY_BYTES_MAX = 64 * 1024;
/** Paths of sign-in requests that wait for an identity provider. */
const ELSEWHERE = /^\/api\/auth\/(?:company|callback)\//;

type RouterParts = Parts<"statements" | "gateways" | "config" | "limiter" | "log" | "auth" | "sessions" | "origin">;
type Handler = (connection: Connection, requestId: string) => Response | Promise<Response>;

/** Serves all paths below `/api/`. Authenticates requests to `/api/console/` before it reads their body. */
export function createConsoleRouter(
	parts: RouterParts,
	options: {
		api: Pick<ConsoleApi, "handle">;
		connectionOf(request: Request): Connection;
		/** Handler of Stripe's webhook; undefined if card payments are not configured. */
		webhook: CardPayments["webhook"] | undefined;
	},
) {
	const { api, connectionOf, webhook } = options;
	const { config, limiter, sessions, origin, log } = parts;
	const bare = { parse: "none" } as const;

	const answered =
		(handler: Handler) =>
		async ({ request }: { request: Request }): Promise<Response> => {
			const { requestId } = newRequestId();
			const language = requestLanguage(request.headers);
			const options = { requestId, isHttps: origin().startsWith("https://") };
			try {
				return securityHeaders(
					await compressResponse(request, await handler(connectionOf(request), requestId)),
					options,
				);
			} catch (error) {
				return securityHeaders(consoleErrorResponse(error, requestId, { log, language }), options);
			}
		};

	const checked = (request: Request, bytesMax = BODY_BYTES_MAX) =>
		checkChange(request, consoleOrigins(config, origin()), bytesMax);

	const unsigned = (handler: Handler, bytesMax = BODY_BYTES_MAX) =>
		answered((connection, requestId) =>
			limiter.withBody(connection, { owner: null, bytesMax }, (whole) => handler(whole, requestId)),
		);

	/** Wraps a handler that needs a session and reads larger bodies itself. Faults `session_required`, `not_found`. */
	const signedIn = (handler: (connection: Connection) => Response | Promise<Response>, bytesMax = BODY_BYTES_MAX) =>
		answered(async (connection, requestId) => {
			const { request, address } = connection;
			checked(request, bytesMax);
			const { viewer, cookies } = await limiter.read(addressNetwork(address), () => viewerOf(parts, connection));
			const membership = await membershipFor(parts, viewer, new URL(request.url).searchParams.get("account"));
			const isRead = request.method === "GET" || request.method === "HEAD";
			if (membership?.viewing && !isRead)
				throw new ConsoleError("forbidden", "This is a read-only view of the account. Close the view to make changes.");
			const owner = membership?.accountId ?? viewer.userId;
			const handle = async (whole: Connection) => {
				// The client may have disconnected while the request waited in the queue.
				if (request.signal.aborted) throw new ConsoleError("request_timeout", "The client disconnected.");
				sessions.open(whole.request, { requestId, connection: whole, viewer, membership });
				return handler(whole);
			};
			const response = isRead
				? await limiter.read(owner, () => handle(connection))
				: bytesMax === BODY_BYTES_MAX
					? await limiter.withBody(connection, { owner, bytesMax }, handle)
					: await handle(connection);
			for (const cookie of cookies) response.headers.append("set-cookie", cookie);
			return response;
		});

	const batchFile = (connection: Connection) => {
		const { method, url } = connection.request;
		const id = method === "GET" ? batchFileId(new URL(url).pathname) : undefined;
		return id === undefined ? api.handle(connection.request) : downloadBatchFile(parts, connection, id);
	};

	const noEndpoint = () => new ConsoleError("not_found", "There is no such endpoint.");
	const nothing = answered(() => {
		throw noEndpoint();
	});
	const routes = new Elysia({ name: "console-router", handler: { standardHostname: false } })
		.all("/api/auth/magic-link/*", nothing, bare)
		.all(
			"/api/auth/*",
			unsigned(async (connection) => {
				const { request, address } = connection;
				const { headers } = request;
				const { pathname } = new URL(request.url);
				const auth = parts.auth();
				if (!auth.paths.has(pathname)) throw noEndpoint();
				checked(request);
				const parsed = request.clone().json();
				assertShortTexts(await parsed.catch(() => null));
				const device = deviceOf(request, await auth.$context);
				const isElsewhere = ELSEWHERE.test(pathname);
				const kind = isElsewhere ? "elsewhere" : device === null ? "unknown" : "known";
				const owner = isElsewhere || device === null ? addressNetwork(address) : device.id;
				const answer = await limiter.signIn(kind, owner, () => auth.handler(withAddress(connection)));
				return translateSignIn(requestLanguage(headers), await rethrowAnswerError(answer));
			}),
			bare,
		)
		.all(
			"/api/console/public/*",
			unsigned((connection, requestId) => {
				checked(connection.request);
				const findViewer = () =>
					limiter.read(addressNetwork(connection.address), () => viewerOrNull(parts, connection));
				sessions.open(connection.request, { requestId, connection, viewer: null, membership: null, findViewer });
				return api.handle(connection.request);
			}),
			bare,
		)
		.post(
			"/api/console/playground/chat",
			signedIn((one) => playgroundChat(parts, one), CHAT_BYTES_MAX),
			bare,
		)
		.post(
			"/api/console/batch-start",
			signedIn((one) => startBatch(parts, one), BATCH_INPUT_BYTES_MAX),
			bare,
		)
		.get("/api/console/batch-files/:id", signedIn(batchFile), bare)
		.all(
			"/api/console/*",
			signedIn(({ request }) => api.handle(request)),
			bare,
		)
		.all("/api/*", nothing, bare);
	if (webhook !== undefined)
		routes.post(
			"/api/stripe/webhook",
			unsigned(({ request }) => webhook(request), EVENT_BYTES_MAX),
			bare,
		);
	if (config.demo)
		routes.all(
			`${SIGN_IN_LINK}*`,
			answered((one) => openSignInLink(parts.auth(), one)),
			bare,
		);
	return routes;
}

/** Reads the session from the database, so that an ended one is refused at once. Fault `session_required`. */
async function viewerOf(parts: Parts<"auth" | "log" | "statements">, connection: Connection) {
	const found = await parts
		.auth()
		.api.getSession({ headers: connection.request.headers, returnHeaders: true })
		.catch((error: unknown) => {
			rethrowExpected(error, parts.log);
			throw error;
		});
	const present = found.response;
	if (present === null) throw sessionRequired();
	const { user, session } = present;
	const revision = session.companyRevision ?? null;
	if (revision !== null && Date.now() - session.createdAt.getTime() > COMPANY_SESSION_MS) throw sessionRequired();
	return {
		viewer: {
			userId: user.id,
			sessionId: session.id,
			authenticatedAgoMs: Date.now() - (session.authenticatedAt ?? session.createdAt).getTime(),
			name: user.name,
			email: user.email,
			emailVerified: user.emailVerified,
			twoFactorEnabled: user.twoFactorEnabled ?? false,
			language: isLanguage(user.language) ? user.language : null,
			company: revision !== null,
			operator: user.operator === true && revision === null,
			memberships: await readMemberships(parts.statements, user, revision),
		},
		cookies: found.headers?.getSetCookie() ?? [],
	};
}

async function viewerOrNull(parts: RouterParts, connection: Connection) {
	if (!connection.request.headers.has("cookie")) return null;
	try {
		const { viewer } = await viewerOf(parts, connection);
		const asked = new URL(connection.request.url).searchParams.get("account");
		return { viewer, membership: await membershipFor(parts, viewer, asked) };
	} catch (error) {
		if (error instanceof Fault && error.code === "session_required") return null;
		throw error;
	}
}

/**
 * Returns the viewer's membership in the requested account, or an operator's open view of the account. Fault
 * `not_found` for every other account, so that the answer does not reveal whether it exists.
 */
async function membershipFor(
	{ statements, sessions }: Pick<RouterParts, "statements" | "sessions">,
	viewer: Viewer,
	asked: string | null,
): Promise<Membership | null> {
	if (asked === null) return viewer.memberships[0] ?? null;
	let found: Membership | null | undefined = viewer.memberships.find(({ accountId }) => accountId === asked);
	if (!found && sessions.mayOperate(viewer)) found = await viewedAccount(statements, viewer.userId, asked);
	if (!found) throw new ConsoleError("not_found", "There is no such account.", { param: "account" });
	return found;
}

function withAddress({ request, address }: Connection): Request {
	const headers = new Headers(request.headers);
	headers.set(ADDRESS_HEADER, address);
	return new Request(request, { headers });
}

/** Origins of the console's own pages. Without PUBLIC_URL they include this machine's host names. */
export function consoleOrigins(config: Pick<Config, "publicUrl">, origin: string): readonly string[] {
	if (config.publicUrl !== null) return [config.publicUrl];
	const { port, protocol } = new URL(origin);
	return [origin, ...["localhost", "127.0.0.1"].map((host) => `${protocol}//${host}${port === "" ? "" : `:${port}`}`)];
}

/**
 * Requires of a request that changes something: the console's own origin, a JSON body and a known length. A form or
 * script of another site cannot send such a request. Throws a Fault.
 */
function checkChange(request: Request, origins: readonly string[], bodyBytesMax: number): void {
	if (request.method === "GET" || request.method === "HEAD") return;
	const { headers } = request;
	const site = headers.get("sec-fetch-site");
	if (!origins.includes(headers.get("origin") ?? "") || (site !== null && site !== "same-origin")) {
		throw new ConsoleError("forbidden", "This request was not sent from a page of this service.");
	}
	const length = headers.get("content-length");
	if (length !== null && Number(length) > bodyBytesMax)
		throw new ConsoleError("payload_too_large", "The request is too large.");
	if (request.method === "DELETE" && length === null && request.body === null) return;
	const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
	if (type !== "application/json")
		throw new ConsoleError("unsupported_media_type", "Send the body as application/json.");
	if (length === null || !/^\d{1,15}$/.test(length))
		throw new ConsoleError("invalid_request", "The request needs a Content-Length header.");
}
