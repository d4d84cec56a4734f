import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { createAuthMiddleware, getIp, getSessionFromCtx, isAPIError } from "better-auth/api";
import { languageOf } from "../../base/language.ts";
import type { Log } from "../../base/log.ts";
import type { Statements } from "../../db/statements.ts";
import type { Mailer } from "../mail/mailer.ts";
import {
	type Attempts,
	codeLimits,
	createAttempts,
	type Limit,
	passwordAgainLimits,
	passwordLimits,
} from "./auth-attempts.ts";
import { readDevice, rememberDevice } from "./auth-device.ts";
import { changeMail } from "./auth-mails.ts";
import { checkNewPassword } from "./auth-password.ts";
import { resetIdentifier, resetTokenOf } from "./auth-reset.ts";
import { signInError } from "./sign-in-error.ts";

interface GuardDeps {
	readonly log: Log;
	readonly statements: Statements;
	readonly mailer: Mailer;
}

interface GuardOptions {
	readonly serviceName: string;
	readonly origin: string;
	/** The library's check of a code of the session's person, backup codes included; throws if it is wrong. */
	readonly checkCode: (ctx: GenericEndpointContext, code: string) => Promise<unknown>;
}

/** Data found before the library's handler and needed after it. */
interface Note {
	readonly limits: readonly Limit[];
	readonly person?: Person | undefined;
	/** The code confirms the set-up of the second factor. */
	readonly isSetUp?: boolean;
}

interface Person {
	readonly id: string;
	readonly email: string;
	readonly name: string;
	readonly two_factor_enabled: boolean;
	readonly password: string | null;
}

type Before = (ctx: GenericEndpointContext) => Promise<Note | undefined>;

/**
 * Hooks around the library's sign-in. They limit guesses (`auth-attempts.ts`), remember browsers (`auth-device.ts`) and
 * check new passwords. They accept a code once, and mail changes to the affected person. Must run after `twoFactor`:
 * while a code is still required, nothing is signed in.
 */
export function guard(deps: GuardDeps, options: GuardOptions) {
	const attempts = createAttempts(deps.statements);
	const notes = new WeakMap<Request, Note>();
	const before: Readonly<Record<string, Before>> = {
		"/sign-in/email": (ctx) => beforePassword(deps, attempts, ctx),
		"/reset-password": (ctx) => beforeReset(deps, options, ctx),
		"/change-password": (ctx) => beforeChange(options, attempts, ctx),
		"/two-factor/enable": (ctx) => beforeEnable(attempts, ctx),
		"/two-factor/disable": (ctx) => beforeWeaker(deps, options, attempts, ctx),
		"/two-factor/generate-backup-codes": (ctx) => beforeWeaker(deps, options, attempts, ctx),
		"/two-factor/verify-totp": (ctx) => beforeCode(deps, options, attempts, ctx),
		"/two-factor/verify-backup-code": (ctx) => beforeCode(deps, options, attempts, ctx),
	};
	return {
		id: "guard",
		hooks: {
			before: [
				{
					matcher: ({ path }) => path !== undefined && Object.hasOwn(before, path),
					handler: createAuthMiddleware(async (ctx) => {
						const note = await before[ctx.path]?.(ctx).catch((error: unknown) => {
							tellRefused(deps.log, ctx, error, undefined);
							throw error;
						});
						if (note !== undefined && ctx.request !== undefined) notes.set(ctx.request, note);
						// A person who knows the former password is signed out, whatever the page sends.
						if (ctx.path === "/change-password")
							return { context: { body: { ...ctx.body, revokeOtherSessions: true } } };
						return;
					}),
				},
			],
			after: [
				{
					matcher: () => true,
					handler: createAuthMiddleware(async (ctx) => {
						const note = ctx.request === undefined ? undefined : notes.get(ctx.request);
						tellLog(deps.log, ctx, note);
						if (isRefusal(ctx.context.returned)) return;
						if (note !== undefined) await afterwards(deps, options, attempts, ctx, note);
						const { newSession } = ctx.context;
						if (newSession !== null) await rememberDevice(ctx, newSession.user.id);
					}),
				},
			],
		},
	} satisfies BetterAuthPlugin;
}

/** Logs sign-ins and refusals by user id and network address. */
function tellLog(log: Log, ctx: GenericEndpointContext, note: Note | undefined): void {
	const { returned, newSession } = ctx.context;
	if (isRefusal(returned)) {
		if (note !== undefined) tellRefused(log, ctx, returned, note.person);
	} else if (newSession !== null)
		log.info("somebody signed in", { act: ctx.path, address: addressOf(ctx), user: newSession.user.id });
}

function tellRefused(log: Log, ctx: GenericEndpointContext, error: unknown, person: Person | undefined): void {
	if (!isAPIError(error)) return;
	const code = error.body?.code ?? null;
	log.info("a sign-in was refused", { act: ctx.path, address: addressOf(ctx), user: person?.id ?? null, code });
}

async function beforePassword(
	{ statements }: GuardDeps,
	attempts: Attempts,
	ctx: GenericEndpointContext,
): Promise<Note | undefined> {
	const email = fieldOf(ctx, "email").toLowerCase();
	if (email === "") return undefined;
	const person = await personOf(statements, { email });
	const device = await readDevice(ctx);
	const limits = passwordLimits({ email, userId: person?.id }, { address: addressOf(ctx), device });
	await attempts.count(limits);
	return { limits, person };
}

async function beforeReset(
	{ statements }: GuardDeps,
	{ serviceName }: GuardOptions,
	ctx: GenericEndpointContext,
): Promise<Note | undefined> {
	// The machine's clock decides about the expiry, later: checked by the database's clock, a link that the library
	// accepts could be missed here.
	const [row] = await statements<{ value: string }>`
		select value from verification where identifier = ${resetIdentifier(resetTokenOf(ctx))}`;
	const person = row && (await personOf(statements, { id: row.value }));
	const ownWords = person === undefined ? [] : [person.email, person.name];
	checkNewPassword(fieldOf(ctx, "newPassword"), [serviceName, ...ownWords]);
	return { limits: [], person };
}

async function beforeChange(
	{ serviceName }: GuardOptions,
	attempts: Attempts,
	ctx: GenericEndpointContext,
): Promise<Note | undefined> {
	const session = await getSessionFromCtx(ctx);
	if (session === null) return undefined;
	checkNewPassword(fieldOf(ctx, "newPassword"), [serviceName, session.user.email, session.user.name]);
	return againOf(attempts, session.session.id);
}

/** A second set-up would replace the former secret with only the password. */
async function beforeEnable(attempts: Attempts, ctx: GenericEndpointContext): Promise<Note | undefined> {
	const session = await getSessionFromCtx(ctx);
	if (session === null) return undefined;
	if (session.user.twoFactorEnabled)
		throw signInError("TWO_FACTOR_ENABLED", "The second factor is set up already. Switch it off first.");
	return againOf(attempts, session.session.id);
}

/** Weakening the sign-in needs the password and a code: a stolen session with a stolen password is not enough. */
async function beforeWeaker(
	deps: GuardDeps,
	options: GuardOptions,
	attempts: Attempts,
	ctx: GenericEndpointContext,
): Promise<Note | undefined> {
	const session = await getSessionFromCtx(ctx);
	if (session === null) return undefined;
	const again = await againOf(attempts, session.session.id);
	await ctx.context.password.checkPassword(session.user.id, ctx);
	if (!session.user.twoFactorEnabled) return again;
	const code = await beforeCode(deps, options, attempts, ctx);
	await options.checkCode(ctx, fieldOf(ctx, "code"));
	return { limits: [...again.limits, ...(code?.limits ?? [])] };
}

/** Checks before a code: the person, the challenge, the limits, and that the code was not used before. */
async function beforeCode(
	{ statements, mailer }: GuardDeps,
	{ serviceName, origin }: GuardOptions,
	attempts: Attempts,
	ctx: GenericEndpointContext,
): Promise<Note | undefined> {
	const asked = await challengeOf(statements, ctx);
	if (asked === undefined) return undefined;
	const { person, challenge, isSession } = asked;
	const limits = codeLimits({ userId: person.id, challenge }, await readDevice(ctx), {
		async challengeUsedUp() {
			if (!isSession) await statements`delete from verification where identifier = ${challenge}`;
		},
		async personUsedUp() {
			mailer.send(changeMail({ service: serviceName, to: person.email, asked: askedBy(ctx) }, "codes guessed", origin));
		},
	});
	await attempts.count(limits);
	const code = fieldOf(ctx, "code");
	const isBackup = ctx.path === "/two-factor/verify-backup-code" || !isTotp(code);
	if (ctx.path === "/two-factor/verify-totp" && isBackup) throw invalidCode();
	// Backup codes too: concurrent requests could each find the same code in the list, and the library would accept all.
	if (!(await attempts.isFirstUse(person.id, code))) throw invalidCode();
	return { limits, person, isSetUp: isSession && !person.two_factor_enabled && ctx.path === "/two-factor/verify-totp" };
}

const askedBy = (ctx: GenericEndpointContext) => languageOf(ctx.headers ?? new Headers());

/** The same order as the library: a session before an unfinished sign-in. */
async function challengeOf(statements: Statements, ctx: GenericEndpointContext) {
	const session = await getSessionFromCtx(ctx);
	if (session !== null) {
		const person = await personOf(statements, { id: session.user.id });
		return person && { person, challenge: session.session.id, isSession: true };
	}
	const cookie = ctx.context.createAuthCookie("two_factor");
	const challenge = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
	if (typeof challenge !== "string") return undefined;
	// Guesses count after the expiry too: the library uses another clock, and could accept a code that would be uncounted
	// here.
	const [row] = await statements<{ value: string }>`select value from verification where identifier = ${challenge}`;
	const person = row && (await personOf(statements, { id: row.value }));
	return person && { person, challenge, isSession: false };
}

async function afterwards(
	{ statements, mailer }: GuardDeps,
	{ serviceName, origin }: GuardOptions,
	attempts: Attempts,
	ctx: GenericEndpointContext,
	note: Note,
): Promise<void> {
	await attempts.takeBack(note.limits);
	const { newSession } = ctx.context;
	const person = note.person ?? (await sessionPerson(statements, ctx));
	if (person === undefined) return;
	const tell = (change: Parameters<typeof changeMail>[1]) =>
		mailer.send(changeMail({ service: serviceName, to: person.email, asked: askedBy(ctx) }, change, origin));
	if (ctx.path === "/sign-in/email") return stillGood(statements, ctx, person);
	if (ctx.path === "/reset-password") {
		await rememberDevice(ctx, person.id);
		// An intruder may have left a passkey and used it for a session while all sessions were being ended.
		await statements`delete from passkey where user_id = ${person.id}`;
		await statements`delete from session where user_id = ${person.id}`;
	}
	if (ctx.path === "/reset-password" || ctx.path === "/change-password") tell("password");
	if (note.isSetUp) {
		const token = newSession?.session.token ?? "";
		await statements`delete from session where user_id = ${person.id} and token <> ${token}`;
		tell("second factor on");
	}
	if (ctx.path === "/two-factor/disable") tell("second factor off");
	if (ctx.path === "/two-factor/generate-backup-codes") tell("backup codes");
	// Reset links, unfinished sign-ins and trusted browsers date from before the change.
	if (!ctx.path.startsWith("/two-factor/verify-") || note.isSetUp)
		await statements`delete from verification where value = ${person.id}`;
}

/** A change during the password check ended all sessions but could not see this new one. */
async function stillGood(statements: Statements, ctx: GenericEndpointContext, person: Person): Promise<void> {
	const now = await personOf(statements, { id: person.id });
	if (now?.password === person.password && now.two_factor_enabled === person.two_factor_enabled) return;
	const { newSession } = ctx.context;
	if (newSession !== null) await statements`delete from session where token = ${newSession.session.token}`;
	await statements`delete from verification where value = ${person.id} and identifier like '2fa-%'`;
	ctx.context.setNewSession(null);
	throw signInError("INVALID_EMAIL_OR_PASSWORD", "Invalid email or password", { status: "UNAUTHORIZED" });
}

async function againOf(attempts: Attempts, sessionId: string): Promise<Note> {
	const limits = passwordAgainLimits(sessionId);
	await attempts.count(limits);
	return { limits };
}

async function sessionPerson(statements: Statements, ctx: GenericEndpointContext): Promise<Person | undefined> {
	const id = ctx.context.newSession?.user.id ?? ctx.context.session?.user.id;
	return id === undefined ? undefined : personOf(statements, { id });
}

async function personOf(
	statements: Statements,
	{ id = null, email = null }: { id?: string | null; email?: string | null },
): Promise<Person | undefined> {
	const [row] = await statements<Person>`
		select u.id, u.email, u.name, u.two_factor_enabled, a.password
		from console_user u left join auth_account a on a.user_id = u.id and a.provider_id = 'credential'
		where u.id = ${id}::text or u.email = ${email}::text limit 1`;
	return row;
}

/** The client's network, for counters by network. */
const addressOf = (ctx: GenericEndpointContext): string =>
	(ctx.headers === undefined ? null : getIp(ctx.headers, ctx.context.options)) ?? "unknown";

function fieldOf({ body }: GenericEndpointContext, name: string): string {
	const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
	return typeof value === "string" && !value.includes("\0") ? value : "";
}

/** Redirects are thrown too, by social sign-ins. */
const isRefusal = (returned: unknown): boolean => isAPIError(returned) && returned.statusCode >= 400;
const isTotp = (code: string) => /^[0-9]{6}$/.test(code);
const invalidCode = () => signInError("INVALID_CODE", "Invalid code", { status: "UNAUTHORIZED" });
