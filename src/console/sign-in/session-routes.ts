import { isAPIError } from "better-auth/api";
import { Elysia, t } from "elysia";
import { requestLanguage } from "../../base/language.ts";
import { toView } from "../../db/statements.ts";
import { auditNote, auditNotesJson } from "../../ops/audit.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { createAttemptLimits, passwordAgainLimits } from "./auth-attempts.ts";
import { createSignInMails } from "./auth-mails.ts";
import { PASSWORD_CHARS_MAX } from "./password-length.ts";

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

export interface PasskeyView {
	readonly id: string;
	readonly name: string;
	readonly createdAtMs: number;
	readonly lastUsedAtMs: number | null;
}

export function sessionRoutes(
	parts: Parts<"statements" | "clock" | "brand" | "mailer" | "auth" | "sessions" | "origin" | "limiter">,
) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-sessions" })
		.post("/reauthenticate", ({ request, body }) => authenticateAgain(parts, request, body.password), {
			body: t.Object({ password: t.String({ minLength: 1, maxLength: PASSWORD_CHARS_MAX }) }),
		})
		.get("/sessions", async ({ request }) => {
			const { userId, sessionId } = sessions.viewer(request);
			// Lists sessions that are valid by the database's clock or by this machine's, which the library uses.
			const rows = await statements<object>`
				select id, id = ${sessionId} as current, created_at, updated_at, expires_at, ip_address as ip, user_agent from session
				where user_id = ${userId} and expires_at > least(clock_timestamp(), to_timestamp(${parts.clock.wallMs()}::double precision / 1000.0))
				order by updated_at desc limit ${SESSIONS_SHOWN_MAX}`;
			return { items: rows.map(toView<SessionView>) };
		})
		.get("/passkeys", async ({ request }) => {
			const rows = await statements<object>`
				select id, name, created_at, last_used_at from passkey where user_id = ${sessions.viewer(request).userId} order by created_at, id`;
			return { items: rows.map(toView<PasskeyView>) };
		})
		.delete("/passkeys/:id", async ({ request, params }) => {
			const { userId, email } = sessions.viewer(request);
			const act = auditNote({ actor: userId, action: "passkey.remove", ip: sessions.of(request).connection.address });
			const rows = await statements`
				with gone as (delete from passkey where id = ${params.id} and user_id = ${userId} returning user_id)
				select audit_note(${auditNotesJson(act)}::text::jsonb, user_id, null) from gone`;
			if (rows.length === 0) throw new ConsoleError("not_found", "There is no such passkey.");
			const mails = createSignInMails(parts.mailer, { serviceName: parts.brand.serviceName, origin: parts.origin() });
			mails.changed(email, requestLanguage(request.headers), "passkey removed");
			return { removed: true };
		})
		.delete("/sessions/:id", async ({ request, params }) => {
			const { userId } = sessions.viewer(request);
			const rows = await statements`delete from session where id = ${params.id} and user_id = ${userId} returning id`;
			if (rows.length === 0) throw new ConsoleError("not_found", "There is no such session.");
			return { revoked: true };
		})
		.post("/sessions/revoke-others", async ({ request }) => {
			const { userId, sessionId } = sessions.viewer(request);
			const rows = await statements`delete from session where user_id = ${userId} and id <> ${sessionId} returning id`;
			return { revoked: rows.length };
		});
}

/**
 * Checks the password again and permits sensitive actions of this session for 15 minutes. Faults: `invalid_request` if
 * the password is wrong or the person has none; `rate_limit_exceeded`.
 */
async function authenticateAgain(
	{ statements, sessions, auth, limiter }: Parts<"statements" | "auth" | "sessions" | "limiter">,
	request: Request,
	password: string,
): Promise<{ authenticated: true }> {
	const { sessionId, userId } = sessions.viewer(request);
	const attempts = createAttemptLimits(statements);
	const limits = passwordAgainLimits(sessionId);
	try {
		await attempts.count(limits);
		await limiter.signIn("known", userId, () =>
			auth().api.verifyPassword({ body: { password }, headers: request.headers }),
		);
	} catch (error) {
		if (!isAPIError(error) || error.statusCode >= 500) throw error;
		if (error.statusCode === 429)
			throw new ConsoleError("rate_limit_exceeded", "Too many attempts. Please sign in again.");
		throw new ConsoleError("invalid_request", "The password is wrong.", { param: "password" });
	}
	await attempts.takeBack(limits);
	// Set by this machine's clock, because the library compares it with that clock; the database's may differ.
	await statements`update session set authenticated_at = to_timestamp(${Date.now()}::double precision / 1000.0) where id = ${sessionId}`;
	return { authenticated: true };
}
