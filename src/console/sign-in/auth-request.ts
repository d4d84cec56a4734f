import type { GenericEndpointContext } from "better-auth";
import { expireCookie } from "better-auth/cookies";
import { type Language, requestLanguage } from "../../base/language.ts";
import type { Log } from "../../base/log.ts";
import { ADDRESS_CHARS_MAX } from "../../base/mail-address.ts";
import type { Terms } from "../../catalog/brand.ts";
import type { Statements } from "../../db/statements.ts";
import { addressSite } from "../../keys/failed-attempts.ts";
import { ConsoleError } from "../console-error.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { MailCaller, SignInMails } from "./auth-mails.ts";
import { PASSWORD_CHARS_MAX } from "./password-length.ts";
import { NAME_CHARS_MAX } from "./person-name.ts";
import { hashToken, newToken } from "./token.ts";

interface SignInParts {
	readonly statements: Statements;
	readonly log: Log;
	readonly mailer: Mailer;
	readonly mails: SignInMails;
	readonly serviceName: string;
	/** Terms that a person must accept to sign up; null: none. */
	readonly terms: Terms | null;
	readonly origin: string;
	readonly origins: readonly string[];
	readonly secret: string;
}
export type SignIn<Names extends keyof SignInParts> = Pick<SignInParts, Names>;

/** Header that passes the client's address to the library's rate limiter; a value sent by the client is replaced. */
export const ADDRESS_HEADER = "x-tollgate-client-address";

const PATH_CHARS_MAX = 500;

/** Returns a text field of a body or query; "" if it is missing or contains characters that Postgres refuses. */
export function textField(record: unknown, name: string): string {
	const value = typeof record === "object" && record !== null ? (record as Record<string, unknown>)[name] : undefined;
	return typeof value === "string" && !value.includes("\0") ? value : "";
}

/** Maximum characters of texts that a sign-in normalizes, which takes quadratic time, or hashes. */
const CHARS_MAX = {
	...{ email: ADDRESS_CHARS_MAX, name: NAME_CHARS_MAX, password: PASSWORD_CHARS_MAX },
	...{ currentPassword: PASSWORD_CHARS_MAX, newPassword: PASSWORD_CHARS_MAX },
};

/** Checks the texts of a sign-in request before the library processes them. Fault `invalid_request`. */
export function assertShortTexts(body: unknown): void {
	for (const [field, count] of Object.entries(CHARS_MAX)) {
		const { [field]: text } = Object(body) as Record<string, unknown>;
		if (typeof text === "string" && text.length > count)
			throw new ConsoleError("invalid_request", "`{field}` has more than {count} characters.", {
				values: { field, count },
				param: field,
			});
	}
}

export const readLanguage = ({ headers }: Pick<GenericEndpointContext, "headers">): Language =>
	requestLanguage(headers ?? new Headers());

/** The caller of a request without a session, for the mails that the request causes. */
export function readMailCaller(ctx: Pick<GenericEndpointContext, "headers">): MailCaller {
	return { asked: readLanguage(ctx), network: addressSite(ctx.headers?.get(ADDRESS_HEADER) ?? "") };
}

/** True if `next`, the page to open after the sign-in, is a path of this site. The pages apply the same rule. */
export const isPagePath = (next: string): boolean => /^\/(?![/\\])/.test(next) && next.length <= PATH_CHARS_MAX;

export const isTotp = (code: string): boolean => /^[0-9]{6}$/.test(code);

/**
 * Stores values that one step of a sign-in leaves for the next step. Each value is valid once, for one purpose, in the
 * browser that has the cookie.
 */
export function createOneTimeValues(statements: Statements, { cookie, minutes }: { cookie: string; minutes: number }) {
	const idOf = (purpose: string, browser: string) => `${cookie}:${hashToken(`${purpose} ${browser}`)}`;
	return {
		async keep(ctx: GenericEndpointContext, purpose: string, value: string): Promise<void> {
			const browser = newToken();
			await statements`
				insert into verification (id, identifier, value, expires_at) values (${crypto.randomUUID()}, ${idOf(purpose, browser)},
					${value}, clock_timestamp() + make_interval(mins => ${minutes}::integer))`;
			const { name, attributes } = ctx.context.createAuthCookie(cookie, { maxAge: minutes * 60 });
			await ctx.setSignedCookie(name, browser, ctx.context.secret, attributes);
		},
		/** Returns and deletes a value. Undefined if it was used or expired, or belongs to another browser or purpose. */
		async take(ctx: GenericEndpointContext, purpose: string): Promise<string | undefined> {
			const authCookie = ctx.context.createAuthCookie(cookie);
			const browser = await ctx.getSignedCookie(authCookie.name, ctx.context.secret);
			if (typeof browser !== "string") return undefined;
			const [row] = await statements<{ value: string }>`
				delete from verification where identifier = ${idOf(purpose, browser)} and expires_at > clock_timestamp() returning value`;
			if (row !== undefined) expireCookie(ctx, authCookie);
			return row?.value;
		},
	};
}
