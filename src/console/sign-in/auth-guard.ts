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
	/** The library's own check of a code of the session's person, backup codes included; throws if it is wrong. */
	readonly checkCode: (ctx: GenericEndpointContext, code: string) => Promise<unknown>;
}

/** What was found before the library's own work and is needed after it. */
interface Note {
	readonly limits: readonly Limit[];
	readonly person?: Person | undefined;
	/** The second factor is being set up by this code. */
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
 * Around the library's own sign-in: guesses are limited (`auth-attempts.ts`), browsers remembered (`auth-device.ts`), new
 * passwords looked at, a code is good once, and who a change is about hears of it by mail. After `twoFactor`: where a code
 * is still asked for, nobody has signed in.
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
						// Whoever knows the former password stays nowhere, whatever the page asks for.
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

/** Who signed in, and who was refused, by ids and addresses of the net. */
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
	// Whether its time is over is said by the machine's clock, behind this: by another one this could miss what that lets pass.
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

/** Setting up anew would replace the former secret by nothing but the password. */
async function beforeEnable(attempts: Attempts, ctx: GenericEndpointContext): Promise<Note | undefined> {
	const session = await getSessionFromCtx(ctx);
	if (session === null) return undefined;
	if (session.user.twoFactorEnabled)
		throw signInError("TWO_FACTOR_ENABLED", "The second factor is set up already. Switch it off first.");
	return againOf(attempts, session.session.id);
}

/** What makes signing in easier needs the password and a code: a stolen session with a stolen password is not enough. */
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

/** Before a code is looked at: by whom, for what, how often, and never the same one twice. */
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
	// Backup codes too: the library strikes one out for each of several that found it in the list at the same moment.
	if (!(await attempts.isFirstUse(person.id, code))) throw invalidCode();
	return { limits, person, isSetUp: isSession && !person.two_factor_enabled && ctx.path === "/two-factor/verify-totp" };
}

const askedBy = (ctx: GenericEndpointContext) => languageOf(ctx.headers ?? new Headers());

/** As the library finds it: a session goes before a sign-in that is half done. */
async function challengeOf(statements: Statements, ctx: GenericEndpointContext) {
	const session = await getSessionFromCtx(ctx);
	if (session !== null) {
		const person = await personOf(statements, { id: session.user.id });
		return person && { person, challenge: session.session.id, isSession: true };
	}
	const cookie = ctx.context.createAuthCookie("two_factor");
	const challenge = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
	if (typeof challenge !== "string") return undefined;
	// Of one whose time is over guesses count too: the library goes by another clock, and tries what this would let pass uncounted.
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
		// Whoever was in the account before may have left one of his own, and have begun a session by it while all were being ended.
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
	// Links for a new password, sign-ins that are half done, and browsers that need no code were given before the change.
	if (!ctx.path.startsWith("/two-factor/verify-") || note.isSetUp)
		await statements`delete from verification where value = ${person.id}`;
}

/** What was changed while the password was being looked at ended all sessions, but could not know of this one. */
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

/** The client's network, for what counts by place. */
const addressOf = (ctx: GenericEndpointContext): string =>
	(ctx.headers === undefined ? null : getIp(ctx.headers, ctx.context.options)) ?? "unknown";

function fieldOf({ body }: GenericEndpointContext, name: string): string {
	const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
	return typeof value === "string" && !value.includes("\0") ? value : "";
}

/** Redirects are thrown as well, by what signs in through another service. */
const isRefusal = (returned: unknown): boolean => isAPIError(returned) && returned.statusCode >= 400;
const isTotp = (code: string) => /^[0-9]{6}$/.test(code);
const invalidCode = () => signInError("INVALID_CODE", "Invalid code", { status: "UNAUTHORIZED" });
