import { Elysia, t } from "elysia";
import { isLanguage, LANGUAGES, type Language, languageOf } from "../base/language.ts";
import { updateAccount } from "../keys/account-admin.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import { audit } from "../ops/audit.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import { touchForAlerts } from "./alerts/alerts.ts";
import type { ConsoleParts } from "./console-deps.ts";
import { ACCOUNT_QUERY, amountOf, EMPTY_BODY, USD } from "./page-query.ts";
import { authenticateAgain } from "./sign-in/auth-again.ts";
import { changeMail } from "./sign-in/auth-mails.ts";
import { PASSWORD_CHARS_MAX } from "./sign-in/password-length.ts";
import { isPersonName, NAME_RULE } from "./sign-in/person-name.ts";
import { acceptTerms, termsDue } from "./sign-in/terms.ts";
import { Refusal } from "./texts/refusal.ts";

const query = t.Object(ACCOUNT_QUERY);
const CODES = Object.keys(LANGUAGES).filter(isLanguage) as [Language, ...Language[]];
const SESSIONS_SHOWN_MAX = 100;

export interface SessionView {
	readonly id: string;
	readonly current: boolean;
	readonly createdAtMs: number;
	readonly updatedAtMs: number;
	readonly expiresAtMs: number;
	readonly ip: string | null;
	readonly userAgent: string | null;
}

interface SessionRow {
	id: string;
	created_at: Date;
	updated_at: Date;
	expires_at: Date;
	ip_address: string | null;
	user_agent: string | null;
}

/** Who I am, my sessions, my account. */
export function settingsRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;
	const act = (request: Request, action: AuditAction, subject: string, detail: Record<string, unknown> = {}) => {
		const { viewer, accountId } = visits.account(request);
		return audit(statements, {
			actor: viewer.userId,
			action,
			subject,
			accountId,
			ip: visits.of(request).connection.address,
			detail,
		});
	};

	return new Elysia({ name: "console-settings" })
		.get("/me", ({ request }) => meOf(parts, request), { query })
		.post(
			"/terms",
			async ({ request, body }) => {
				const { userId } = visits.viewer(request);
				await acceptTerms(statements, userId, { terms: parts.brand.shown.terms, version: body.version });
				return { accepted: body.version };
			},
			{ body: t.Object({ version: t.String({ maxLength: 40 }) }) },
		)
		.put(
			"/language",
			async ({ request, body }) => {
				const { userId } = visits.viewer(request);
				await statements`update console_user set language = ${body.language} where id = ${userId}`;
				return { language: body.language };
			},
			{ body: t.Object({ language: t.UnionEnum(CODES) }) },
		)
		.post("/reauthenticate", ({ request, body }) => authenticateAgain(parts, request, body.password), {
			body: t.Object({ password: t.String({ minLength: 1, maxLength: PASSWORD_CHARS_MAX }) }),
		})
		.get("/sessions", async ({ request }) => ({ items: await listSessions(parts, request) }))
		.get("/passkeys", async ({ request }) => ({ items: await listPasskeys(parts, request) }))
		.delete("/passkeys/:id", async ({ request, params }) => {
			const { userId, email } = visits.viewer(request);
			const rows = await statements`delete from passkey where id = ${params.id} and user_id = ${userId} returning id`;
			if (rows.length === 0) throw new Refusal("not_found", "There is no such passkey.");
			const ip = visits.of(request).connection.address;
			await audit(statements, { actor: userId, action: "passkey.remove", subject: userId, accountId: null, ip });
			const addressee = { service: parts.brand.serviceName, to: email, asked: languageOf(request.headers) };
			parts.mailer.send(changeMail(addressee, "passkey removed", parts.origin()));
			return { removed: true };
		})
		.delete("/sessions/:id", async ({ request, params }) => {
			const { userId } = visits.viewer(request);
			const rows = await statements`delete from session where id = ${params.id} and user_id = ${userId} returning id`;
			if (rows.length === 0) throw new Refusal("not_found", "There is no such session.");
			return { revoked: true };
		})
		.post(
			"/sessions/revoke-others",
			async ({ request }) => {
				const { userId, sessionId } = visits.viewer(request);
				const rows =
					await statements`delete from session where user_id = ${userId} and id <> ${sessionId} returning id`;
				return { revoked: rows.length };
			},
			{ body: EMPTY_BODY },
		)
		.patch(
			"/account",
			async ({ request, body }) => {
				const { accountId } = visits.account(request);
				const { name, timeZone } = body;
				if (name !== undefined && !isPersonName(name))
					throw new Refusal("invalid_request", NAME_RULE, { param: "name" });
				await updateAccount(statements, accountId, body);
				if (name !== undefined) await act(request, "account.rename", accountId, { name });
				if (timeZone !== undefined) await act(request, "account.time_zone", accountId, { timeZone });
				return { id: accountId };
			},
			{
				query,
				body: t.Object({
					name: t.Optional(t.String({ minLength: 1, maxLength: 200 })),
					timeZone: t.Optional(t.String({ minLength: 1, maxLength: 100 })),
				}),
			},
		)
		.get("/alert", ({ request }) => readAlert(parts, visits.account(request).accountId), { query })
		.put(
			"/alert",
			async ({ request, body }) => {
				const { accountId } = visits.account(request);
				const threshold = body.usd === null ? null : amountOf(body.usd, "usd");
				if (threshold === null) await statements`delete from credit_alert where account_id = ${accountId}`;
				else
					await statements`
						insert into credit_alert (account_id, threshold_nano_usd) values (${accountId}, ${threshold})
						on conflict (account_id) do update set threshold_nano_usd = excluded.threshold_nano_usd, armed = true`;
				await touchForAlerts(statements, accountId);
				await act(request, "account.alert", accountId, { usd: body.usd });
				return readAlert(parts, accountId);
			},
			{ query, body: t.Object({ usd: t.Nullable(USD) }) },
		);
}

async function meOf({ statements, brand, visits }: ConsoleParts, request: Request) {
	const { userId, sessionId, name, email, emailVerified, twoFactorEnabled, operator, company, language, memberships } =
		visits.viewer(request);
	const accounts = memberships.map(({ accountId, ...rest }) => ({ id: accountId, ...rest }));
	const chosen = visits.of(request).membership?.accountId;
	return {
		user: { id: userId, name, email, emailVerified, twoFactorEnabled, operator, company, language },
		session: { id: sessionId },
		/** To be agreed to before anything else is shown. */
		termsDue: await termsDue(statements, userId, brand.shown.terms),
		accounts,
		account: accounts.find(({ id }) => id === chosen) ?? null,
	};
}

export interface PasskeyView {
	readonly id: string;
	readonly name: string;
	readonly createdAtMs: number;
	readonly lastUsedAtMs: number | null;
}

async function listPasskeys({ statements, visits }: ConsoleParts, request: Request): Promise<PasskeyView[]> {
	const rows = await statements<{ id: string; name: string; created_at: Date; last_used_at: Date | null }>`
		select id, name, created_at, last_used_at from passkey where user_id = ${visits.viewer(request).userId} order by created_at, id`;
	return rows.map(({ id, name, created_at, last_used_at }) => ({
		...{ id, name },
		createdAtMs: created_at.getTime(),
		lastUsedAtMs: last_used_at?.getTime() ?? null,
	}));
}

async function listSessions({ statements, visits }: ConsoleParts, request: Request): Promise<SessionView[]> {
	const { userId, sessionId } = visits.viewer(request);
	const rows = await statements<SessionRow>`
		select id, created_at, updated_at, expires_at, ip_address, user_agent from session
		where user_id = ${userId} and expires_at > clock_timestamp() order by updated_at desc limit ${SESSIONS_SHOWN_MAX}`;
	return rows.map((row) => ({
		id: row.id,
		current: row.id === sessionId,
		createdAtMs: row.created_at.getTime(),
		updatedAtMs: row.updated_at.getTime(),
		expiresAtMs: row.expires_at.getTime(),
		ip: row.ip_address,
		userAgent: row.user_agent,
	}));
}

export interface AlertView {
	readonly thresholdNanoUsd: NanoUsd | null;
	readonly lastSentAtMs: number | null;
}

export async function readAlert(
	{ statements }: Pick<ConsoleParts, "statements">,
	accountId: string,
): Promise<AlertView> {
	const [row] = await statements<{ threshold_nano_usd: string; last_sent_at: Date | null }>`
		select threshold_nano_usd, last_sent_at from credit_alert where account_id = ${accountId}`;
	if (row === undefined) return { thresholdNanoUsd: null, lastSentAtMs: null };
	return {
		thresholdNanoUsd: nanoUsdOfColumn(row.threshold_nano_usd),
		lastSentAtMs: row.last_sent_at?.getTime() ?? null,
	};
}
