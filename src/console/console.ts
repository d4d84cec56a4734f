import type { Clock } from "../base/clock.ts";
import { newRequestId } from "../base/id.ts";
import { isLanguage, languageOf } from "../base/language.ts";
import type { Log } from "../base/log.ts";
import { type CardPayments, createCardPayments } from "../billing/card-payments.ts";
import type { Config } from "../config.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { createDeployments } from "../deployments/deployments.ts";
import type { Connection } from "../gateway/connection.ts";
import type { Digest } from "../keys/digest.ts";
import type { Reconciler } from "../ledger/reconciler.ts";
import type { HealthReport } from "../ops/health.ts";
import { countOpenFindings, PAYMENTS_DIFFER } from "../ops/payment-findings.ts";
import {
	BATCH_INPUT_BYTES_MAX,
	BATCH_START,
	batchFileId,
	downloadBatchFile,
	startBatch,
} from "./batches/batch-gateway.ts";
import type { OwnBrand } from "./brand/shown-brand.ts";
import { createConsoleApi } from "./console-api.ts";
import { createConsoleClients } from "./console-clients.ts";
import type { ConsoleParts } from "./console-deps.ts";
import { consoleErrorResponse } from "./console-error.ts";
import type { ConsoleFigures } from "./console-figures.ts";
import type { GatewayClient } from "./gateway-client.ts";
import { type JobOptions, startJobs } from "./jobs.ts";
import { createLiveFeed } from "./live/live-feed.ts";
import { createHoldingRights } from "./live/live-rights.ts";
import { createMailer } from "./mail/mailer.ts";
import { createManagement, isManagement } from "./management/management.ts";
import { createWebhookSender, webhookSecret } from "./notices/webhook.ts";
import { packed } from "./pages/pack.ts";
import { playgroundChat } from "./playground.ts";
import { checkChange } from "./request-guard.ts";
import { secure } from "./security-headers.ts";
import { ADDRESS_HEADER, type Auth, createAuth, passOn, passOnAnswer } from "./sign-in/auth.ts";
import { SIGN_IN_LINK } from "./sign-in/new-sign-in-link.ts";
import { openSignInLink } from "./sign-in/sign-in-link.ts";
import { Refusal } from "./texts/refusal.ts";
import { answerIn } from "./texts/told-in.ts";
import { type Membership, membershipsOf, type Viewer } from "./viewer.ts";
import { createVisits, sessionRequired } from "./visit.ts";

export interface ConsoleDeps {
	readonly config: Config;
	readonly brand: OwnBrand;
	readonly databaseUrl: string;
	/** For transactions. */
	readonly tx: Transactional;
	readonly clock: Clock;
	readonly log: Log;
	readonly jobs?: JobOptions | undefined;
	readonly digest: Digest;
	readonly consoleSecret: string;
	readonly gateways: GatewayClient;
	readonly books: Pick<Reconciler, "run">;
	readonly figures: ConsoleFigures;
	/** Where people reach the service without PUBLIC_URL, for links and cookies; known once somebody listens. */
	readonly listeningAt: () => string;
}

/** People's part of the service: everything below `/api/`, and what operators' scripts do, below `/v1/management/`. */
export interface Console {
	handle(connection: Connection): Promise<Response>;
	/** Whether it can do its work; says what is missing. */
	health(): Promise<HealthReport>;
	/** Ends what would otherwise stay open for minutes. */
	shutDown(): void;
	stop(): Promise<void>;
}

/** Then the company is asked again whether somebody is still one of its people. */
const COMPANY_SESSION_MS = 12 * 3_600_000;
const PLAYGROUND = "/api/console/playground/chat";
const CHAT_BYTES_MAX = 32 * 1024 * 1024;

export function createConsole(deps: ConsoleDeps): Console {
	const { config, brand, tx, clock, log } = deps;
	const { statements, liveness, sums } = createConsoleClients(deps, deps.databaseUrl);
	const origin = () => config.publicUrl ?? deps.listeningAt();
	const mailer = createMailer(
		{ ...deps, statements },
		{ smtpUrl: config.smtpUrl, from: config.mailFrom, demo: config.demo },
	);
	const cards = cardsOf(deps, statements);
	let madeAuth: Auth | undefined;
	const auth = () => {
		madeAuth ??= createAuth(
			{ tx, statements, log, mailer },
			{
				config,
				serviceName: brand.serviceName,
				terms: brand.shown.terms,
				secret: deps.consoleSecret,
				origin: origin(),
				origins: originsOf(config, origin()),
			},
		);
		return madeAuth;
	};
	const parts: ConsoleParts = {
		statements,
		liveness,
		tx,
		books: deps.books,
		figures: deps.figures,
		clock,
		log,
		config,
		brand,
		deployments: createDeployments({ statements, clock }),
		gateways: deps.gateways,
		keyMaker: { statements, digest: deps.digest, serviceName: config.serviceName },
		cards,
		mailer,
		consoleSecret: deps.consoleSecret,
		webhookSecretOf: (salt) => webhookSecret(deps.consoleSecret, salt),
		auth,
		visits: createVisits({ secondFactor: config.production, passwordAgain: !config.demo }),
		live: createLiveFeed({ ...deps, holding: createHoldingRights(statements, { secondFactor: config.production }) }),
		origin,
	};
	const api = createConsoleApi(parts);
	const management = createManagement(parts);
	const jobs = startJobs(
		{
			...parts,
			sums,
			sendWebhook: createWebhookSender(config),
			serviceName: brand.serviceName,
			booksVerifyRowsPerS: config.booksVerifyRowsPerS,
			retention: config.retention,
		},
		deps.jobs,
	);

	return {
		async handle(connection) {
			if (isManagement(new URL(connection.request.url).pathname)) return management(connection);
			const { requestId } = newRequestId();
			const language = languageOf(connection.request.headers);
			const options = { requestId, isHttps: origin().startsWith("https://") };
			try {
				const answer = await route(parts, api, connection, requestId);
				return secure(await packed(connection.request, await answerIn(language, answer)), options);
			} catch (error) {
				return secure(await answerIn(language, consoleErrorResponse(error, requestId, log)), options);
			}
		},
		health: () => healthOf(parts),
		shutDown: () => parts.live.stop(),
		async stop() {
			parts.live.stop();
			// Sums that are being made for the first time would keep the others waiting.
			await Promise.all([jobs.stop(), sums.end(), liveness.end()]);
			mailer.stop();
			await statements.end();
		},
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

/** Undefined where card payments are not set up. */
function cardsOf({ config, brand, tx, clock, log }: ConsoleDeps, statements: Statements): CardPayments | undefined {
	if (config.stripeSecretKey === null) return undefined;
	return createCardPayments(
		{ statements, tx, clock, log },
		{
			secretKey: config.stripeSecretKey,
			webhookSecrets: config.stripeWebhookSecrets,
			apiBase: config.stripeApiBase,
			serviceName: brand.serviceName,
		},
	);
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
			throw new Refusal("not_found", "There is no such endpoint.");
		return parts.cards.webhook(request);
	}
	const origins = originsOf(parts.config, parts.origin());
	if (parts.config.demo && pathname.startsWith(SIGN_IN_LINK)) {
		return openSignInLink(parts.auth(), connection);
	}
	if (pathname.startsWith("/api/auth/") && !pathname.startsWith("/api/auth/magic-link/")) {
		checkChange(request, origins);
		return passOnAnswer(await parts.auth().handler(withAddress(connection)));
	}
	if (!pathname.startsWith("/api/console/")) throw new Refusal("not_found", "There is no such endpoint.");
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
	if (found === undefined) throw new Refusal("not_found", "There is no such account.", { param: "account" });
	return found;
}

/** The request with the client's address as we know it, whatever it says itself. */
function withAddress({ request, address }: Connection): Request {
	const headers = new Headers(request.headers);
	headers.set(ADDRESS_HEADER, address);
	return new Request(request, { headers });
}

/** Without PUBLIC_URL this machine's own names are the same page. */
function originsOf(config: Config, origin: string): readonly string[] {
	if (config.publicUrl !== null) return [config.publicUrl];
	const { port, protocol } = new URL(origin);
	return [origin, ...["localhost", "127.0.0.1"].map((host) => `${protocol}//${host}${port === "" ? "" : `:${port}`}`)];
}
