import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { expireCookie, setSessionCookie } from "better-auth/cookies";
import { newId } from "../../base/id.ts";
import { ENGLISH, type Language } from "../../base/language.ts";
import { isMailAddress } from "../../base/mail-address.ts";
import type { Statements } from "../../db/statements.ts";
import { rememberDevice } from "./auth-device.ts";
import { checkNewPassword } from "./auth-password.ts";
import { isPagePath, readLanguage, readMailCaller, type SignIn, textField } from "./auth-request.ts";
import { isPersonName, NAME_RULE } from "./person-name.ts";
import { isSignInAddress } from "./sign-in-address.ts";
import { signInError } from "./sign-in-error.ts";
import { hashToken, newToken } from "./token.ts";

const COOKIE = "sign_up";
const VALID_HOURS = 24;
/** Most unconfirmed sign-ups per address; a further one deletes the oldest. */
const OPEN_MAX = 100;

/**
 * Replaces the library's sign-up: creates a person only when the mailed link proves the address. The chosen password is
 * used only in the browser that signed up. A stranger who signs up with the address therefore gains nothing.
 */
export function signUpPlugin(parts: SignIn<"statements" | "mailer" | "mails" | "serviceName" | "terms">) {
	const { statements, mailer, mails, serviceName, terms } = parts;
	return {
		id: "sign-up",
		endpoints: {
			/**
			 * Body: `name`, `email`, `password`, `next` (page to open afterwards), `acceptedTerms` (version of the terms).
			 * Returns the same response for every address.
			 */
			signUpEmail: createAuthEndpoint("/sign-up/email", { method: "POST" }, async (ctx) => {
				if (!mailer.works)
					throw signInError("EMAIL_PASSWORD_SIGN_UP_DISABLED", "Sign-up is not available: this service sends no mail.");
				const { name, email, next } = signUpOf(ctx.body);
				const termsVersion = terms?.version ?? null;
				if (termsVersion !== null && textField(ctx.body, "acceptedTerms") !== termsVersion)
					throw signInError("TERMS_NOT_ACCEPTED", "Accept the terms of this service to continue.");
				const chosen = textOf(ctx.body, "password");
				checkNewPassword(chosen, [serviceName, name, email]);
				const password = await ctx.context.password.hash(chosen);
				const [token, browser] = [newToken(), newToken()];
				const isNew = await open(statements, { token, browser, email, name, password, termsVersion });
				const caller = readMailCaller(ctx);
				if (isNew) mails.signUp(email, caller, new URLSearchParams({ token, ...(isPagePath(next) ? { next } : {}) }));
				else mails.known(email, caller);
				const cookie = ctx.context.createAuthCookie(COOKIE, { maxAge: VALID_HOURS * 3600 });
				await ctx.setSignedCookie(cookie.name, browser, ctx.context.secret, cookie.attributes);
				return ctx.json({ status: true });
			}),
			/**
			 * Body: `token`; in a browser other than the one that signed up also `newPassword` and `name`. The response says
			 * whether a session began. Error PASSWORD_REQUIRED does not use up the token.
			 */
			verifyEmail: createAuthEndpoint("/verify-email", { method: "POST" }, async (ctx) => {
				const tokenHash = hashToken(textOf(ctx.body, "token"));
				const [row] = await statements<{ browser_hash: string; email: string }>`
					select browser_hash, email from sign_up where token_hash = ${tokenHash} and expires_at > clock_timestamp()`;
				if (row === undefined) throw usedUp();
				const cookie = ctx.context.createAuthCookie(COOKIE);
				const browser = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
				const isSame = typeof browser === "string" && hashToken(browser) === row.browser_hash;
				const userId = await prove(
					statements,
					tokenHash,
					isSame ? null : await chosenHere(ctx, [serviceName, row.email]),
					readLanguage(ctx),
				);
				if (userId === undefined) throw usedUp();
				if (!isSame) {
					await rememberDevice(ctx, userId);
					return ctx.json({ status: true, signedIn: false });
				}
				const user = await ctx.context.internalAdapter.findUserById(userId);
				const session = user === null ? null : await ctx.context.internalAdapter.createSession(userId);
				if (user === null || session === null) throw usedUp();
				await setSessionCookie(ctx, { session, user });
				expireCookie(ctx, cookie);
				return ctx.json({ status: true, signedIn: true });
			}),
		},
	} satisfies BetterAuthPlugin;
}

async function chosenHere(
	ctx: { body: unknown; context: { password: { hash(password: string): Promise<string> } } },
	ownWords: readonly string[],
): Promise<{ name: string; password: string }> {
	if (textField(ctx.body, "newPassword") === "")
		throw signInError("PASSWORD_REQUIRED", "You signed up in another browser. Choose a password here.");
	const chosen = textOf(ctx.body, "newPassword");
	const name = nameOf(ctx.body);
	checkNewPassword(chosen, [...ownWords, name]);
	return { name, password: await ctx.context.password.hash(chosen) };
}

/** Stores a sign-up. Returns false, and stores nothing, if the address belongs to a verified person. */
async function open(
	statements: Statements,
	row: { token: string; browser: string; email: string; name: string; password: string; termsVersion: string | null },
): Promise<boolean> {
	const rows = await statements<{ email: string }>`
		with surplus as (
			delete from sign_up where token_hash in (
				select token_hash from sign_up where email = ${row.email} order by created_at desc offset ${OPEN_MAX - 1}::integer)
		)
		insert into sign_up (token_hash, email, name, password, terms_version, browser_hash, expires_at)
		select ${hashToken(row.token)}::text, ${row.email}::text, ${row.name}::text, ${row.password}::text,
			${row.termsVersion}::text, ${hashToken(row.browser)}::text,
			clock_timestamp() + make_interval(hours => ${VALID_HOURS}::integer)
		where not exists (select 1 from console_user where email = ${row.email}::text and email_verified)
		returning email`;
	return rows.length > 0;
}

/**
 * Uses up the token and creates the person, in one statement. An unverified person with this address is taken over, and
 * all sign-ups of the address are deleted. `chosen` replaces the name and password of the sign-up. Undefined if the
 * token is invalid or the address was verified in the meantime.
 */
async function prove(
	statements: Statements,
	tokenHash: string,
	chosen: { name: string; password: string } | null,
	language: Language,
): Promise<string | undefined> {
	const [row] = await statements<{ id: string }>`
		with proved as (
			delete from sign_up where token_hash = ${tokenHash} and expires_at > clock_timestamp() returning email, name, password, terms_version
		), others as (
			delete from sign_up s using proved where s.email = proved.email and s.token_hash <> ${tokenHash}
		), person as (
			insert into console_user as u (id, name, email, email_verified, language)
			select ${newId("usr")}::text, coalesce(${chosen?.name ?? null}::text, name), email, true, ${language === ENGLISH ? null : language}::text from proved
			on conflict (email) do update set name = excluded.name, email_verified = true, image = null, two_factor_enabled = false,
				language = excluded.language, updated_at = clock_timestamp() where not u.email_verified
			returning id
		), credentials as (
			delete from auth_account a using person where a.user_id = person.id
		), sessions as (
			delete from session s using person where s.user_id = person.id
		), factors as (
			delete from two_factor f using person where f.user_id = person.id
		), tokens as (
			delete from verification v using person where v.value = person.id
		), password as (
			insert into auth_account (id, account_id, provider_id, user_id, password)
			select ${newId("cred")}::text, person.id, 'credential', person.id, coalesce(${chosen?.password ?? null}::text, proved.password)
			from person, proved
		), agreed as (
			insert into terms_acceptance (user_id, version)
			select person.id, terms_version from person, proved
			-- Terms accepted in another browser may not have been accepted by this person.
			where terms_version is not null and ${chosen === null}::boolean
			on conflict do nothing
		)
		select id from person`;
	return row?.id;
}

/**
 * Deletes expired sign-ups, people without a verified address, expired links and unfinished sign-ins. Links and
 * sign-ins must be expired by the database's clock and by this machine's, which the library uses.
 */
export async function deleteUnverifiedPeople(statements: Statements, nowMs: number): Promise<void> {
	await statements`delete from sign_up where expires_at < clock_timestamp()`;
	await statements`
		delete from console_user u where not email_verified and not operator
			and created_at < clock_timestamp() - make_interval(hours => ${VALID_HOURS}::integer)
			and not exists (select 1 from member m where m.user_id = u.id)`;
	await statements`
		delete from verification where expires_at < least(clock_timestamp(), to_timestamp(${nowMs}::double precision / 1000.0))`;
}

export async function deleteOldSessions(statements: Statements, nowMs: number): Promise<void> {
	await statements`
		delete from session where expires_at < least(clock_timestamp(), to_timestamp(${nowMs}::double precision / 1000.0))`;
}

function signUpOf(body: unknown): { name: string; email: string; next: string } {
	const email = textOf(body, "email").trim().toLowerCase();
	if (!isMailAddress(email)) throw signInError("INVALID_EMAIL", "Enter a valid email address.");
	if (!isSignInAddress(email))
		throw signInError("ADDRESS_NOT_USABLE", "This address cannot be used to sign in. Use another one.");
	return { name: nameOf(body), email, next: textField(body, "next") };
}

function nameOf(body: unknown): string {
	const name = textOf(body, "name").trim();
	if (!isPersonName(name)) throw signInError("INVALID_NAME", NAME_RULE);
	return name;
}

function textOf(body: unknown, field: string): string {
	const value = textField(body, field);
	if (value === "")
		throw signInError("INVALID_FIELD", "The field {field} is missing or malformed.", { values: { field } });
	return value;
}

const usedUp = () => signInError("INVALID_TOKEN", "This link has expired or was already used.");

export const resetIdentifier = (token: string) => `reset-password:${token}`;

export function readResetToken({ body, query }: { body?: unknown; query?: unknown }): string {
	return textField(body, "token") || textField(query, "token");
}

/**
 * Sets a password by a mailed link, in one transaction. The library would need five separate steps: an interruption
 * could use up the link and leave old sessions valid. `signInGuardPlugin` has checked the password before. The expiry is
 * compared with this machine's clock, by which the library sets it.
 */
export function passwordResetPlugin({ statements }: SignIn<"statements">) {
	return {
		id: "password-reset",
		endpoints: {
			resetPassword: createAuthEndpoint("/reset-password", { method: "POST" }, async (ctx) => {
				const identifier = resetIdentifier(readResetToken(ctx));
				// Looks the link up before the expensive password hash, so that an invalid link costs little.
				const known = await statements`
					select 1 from verification where identifier = ${identifier} and expires_at > to_timestamp(${Date.now()}::double precision / 1000.0)`;
				if (known.length === 0) throw usedUp();
				const password = await ctx.context.password.hash(textField(ctx.body, "newPassword"));
				const [row] = await statements<{ id: string | null }>`
					select password_reset(${identifier}, ${newId("cred")}, ${password}, ${Date.now()}::double precision) as id`;
				if (row === undefined || row.id === null) throw usedUp();
				return ctx.json({ status: true });
			}),
		},
	} satisfies BetterAuthPlugin;
}
