import { newRequestId } from "../base/id.ts";
import { isLanguage, languageOf } from "../base/language.ts";
import type { Connection } from "../gateway/connection.ts";
import type { HealthReport } from "../ops/health.ts";
import { countOpenFindings, PAYMENTS_DIFFER } from "../ops/payment-findings.ts";
import {
	BATCH_INPUT_BYTES_MAX,
	BATCH_START,
	batchFileId,
	downloadBatchFile,
	startBatch,
} from "./batches/batch-gateway.ts";
import { createConsoleApi } from "./console-api.ts";
import type { ConsoleParts } from "./console-deps.ts";
import { ConsoleError, consoleErrorResponse } from "./console-error.ts";
import { originsOf } from "./console-parts.ts";
import { packed } from "./pages/pack.ts";
import { playgroundChat } from "./playground.ts";
import { checkChange } from "./request-guard.ts";
import { secure } from "./security-headers.ts";
import { ADDRESS_HEADER, passOn, passOnAnswer } from "./sign-in/auth.ts";
import { SIGN_IN_LINK } from "./sign-in/new-sign-in-link.ts";
import { translateSignIn } from "./sign-in/sign-in-error.ts";
import { openSignInLink } from "./sign-in/sign-in-link.ts";
import { type Membership, membershipsOf, type Viewer } from "./viewer.ts";
import { sessionRequired } from "./visit.ts";

/** People's part of the service: everything below `/api/`. */
export interface Console {
	handle(connection: Connection): Promise<Response>;
	/** Whether it can do its work; says what is missing. */
	health(): Promise<HealthReport>;
	/** Ends what would otherwise stay open for minutes. */
	shutDown(): void;
}

/** Then the company is asked again whether somebody is still one of its people. */
const COMPANY_SESSION_MS = 12 * 3_600_000;
const PLAYGROUND = "/api/console/playground/chat";
const CHAT_BYTES_MAX = 32 * 1024 * 1024;

export function createConsole(parts: ConsoleParts): Console {
	const { origin, log } = parts;
	const api = createConsoleApi(parts);

	return {
		async handle(connection) {
			const { requestId } = newRequestId();
			const language = languageOf(connection.request.headers);
			const options = { requestId, isHttps: origin().startsWith("https://") };
			try {
				const answer = await route(parts, api, connection, requestId);
				return secure(await packed(connection.request, answer), options);
			} catch (error) {
				return secure(consoleErrorResponse(error, requestId, { log, language }), options);
			}
		},
		health: () => healthOf(parts),
		shutDown: () => parts.live.stop(),
	};
}

async function healthOf({ deployments, statements }: ConsoleParts): Promise<HealthReport> {
	try {
		const { gateways } = await deployments.current();
		const warnings = gateways === 0 ? ["no gateway is live: no model can be asked"] : [];
		if ((await countOpenFindings(statements)) > 0) warnings.push(PAYMENTS_DIFFER);
		return { ready: true, reasons: [], warnings };
	} catch {
		return { ready: false, reasons: ["the database does not answer"], warnings: [] };
	}
}

/** Who asks is settled here, before anything of a body is read. */
async function route(
	parts: ConsoleParts,
	api: ReturnType<typeof createConsoleApi>,
	connection: Connection,
	requestId: string,
): Promise<Response> {
	const { request } = connection;
	const { pathname, searchParams } = new URL(request.url);
	if (pathname === "/api/stripe/webhook") {
		if (parts.cards === undefined || request.method !== "POST")
			throw new ConsoleError("not_found", "There is no such endpoint.");
		return parts.cards.webhook(request);
	}
	const origins = originsOf(parts.config, parts.origin());
	if (parts.config.demo && pathname.startsWith(SIGN_IN_LINK)) {
		return openSignInLink(parts.auth(), connection);
	}
	if (pathname.startsWith("/api/auth/") && !pathname.startsWith("/api/auth/magic-link/")) {
		checkChange(request, origins);
		const answer = await passOnAnswer(await parts.auth().handler(withAddress(connection)));
		return translateSignIn(languageOf(request.headers), answer);
	}
	if (!pathname.startsWith("/api/console/")) throw new ConsoleError("not_found", "There is no such endpoint.");
	const isChat = pathname === PLAYGROUND && request.method === "POST";
	const isBatch = pathname === BATCH_START && request.method === "POST";
	checkChange(request, origins, isChat ? CHAT_BYTES_MAX : isBatch ? BATCH_INPUT_BYTES_MAX : undefined);
	if (pathname.startsWith("/api/console/public/")) {
		parts.visits.open(request, { requestId, connection, viewer: null, membership: null });
		return api.handle(request);
	}
	const { viewer, cookies } = await viewerOf(parts, connection);
	const membership = membershipFor(viewer, searchParams.get("account"));
	parts.visits.open(request, { requestId, connection, viewer, membership });
	const response = await answer(parts, api, connection, { isChat, isBatch, pathname });
	for (const cookie of cookies) response.headers.append("set-cookie", cookie);
	return response;
}

/** What carries its own stream is served here. */
async function answer(
	parts: ConsoleParts,
	api: ReturnType<typeof createConsoleApi>,
	connection: Connection,
	{ isChat, isBatch, pathname }: { isChat: boolean; isBatch: boolean; pathname: string },
): Promise<Response> {
	if (isChat) return playgroundChat(parts, connection);
	if (isBatch) return startBatch(parts, connection);
	const fileId = connection.request.method === "GET" ? batchFileId(pathname) : undefined;
	return fileId === undefined ? api.handle(connection.request) : downloadBatchFile(parts, connection, fileId);
}

/** Reads the session anew each time: one that was ended a moment ago opens nothing. Fault session_required. */
async function viewerOf(
	parts: ConsoleParts,
	connection: Connection,
): Promise<{ viewer: Viewer; cookies: readonly string[] }> {
	const found = await parts
		.auth()
		.api.getSession({ headers: connection.request.headers, returnHeaders: true })
		.catch((error: unknown) => {
			passOn(error, parts.log);
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
			// Sessions are dated by the library, which knows the machine's time alone.
			authenticatedAgoMs: Date.now() - (session.authenticatedAt ?? session.createdAt).getTime(),
			name: user.name,
			email: user.email,
			emailVerified: user.emailVerified,
			twoFactorEnabled: user.twoFactorEnabled ?? false,
			language: isLanguage(user.language) ? user.language : null,
			company: revision !== null,
			operator: user.operator === true && revision === null,
			memberships: await membershipsOf(parts.statements, user, revision),
		},
		cookies: found.headers?.getSetCookie() ?? [],
	};
}

/** The account that was asked for, if it is one of the viewer's. Fault not_found: others' accounts do not exist. */
function membershipFor(viewer: Viewer, asked: string | null): Membership | null {
	if (asked === null) return viewer.memberships[0] ?? null;
	const found = viewer.memberships.find(({ accountId }) => accountId === asked);
	if (found === undefined) throw new ConsoleError("not_found", "There is no such account.", { param: "account" });
	return found;
}

/** The request with the client's address as we know it, whatever it says itself. */
function withAddress({ request, address }: Connection): Request {
	const headers = new Headers(request.headers);
	headers.set(ADDRESS_HEADER, address);
	return new Request(request, { headers });
}
