import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { createAuthMiddleware, getIp, getSessionFromCtx, isAPIError } from "better-auth/api";
import type { Statements } from "../../db/statements.ts";
import {
	type AttemptLimit,
	type AttemptLimits,
	codeLimits,
	createAttemptLimits,
	passwordAgainLimits,
	passwordLimits,
} from "./auth-attempts.ts";
import { readDevice, rememberDevice } from "./auth-device.ts";
import type { SignInMails } from "./auth-mails.ts";
import { checkNewPassword } from "./auth-password.ts";
import { isTotp, readLanguage, type SignIn, textField } from "./auth-request.ts";
import { readResetToken, resetIdentifier } from "./auth-sign-up.ts";
import { signInError } from "./sign-in-error.ts";

interface Guard extends SignIn<"log" | "statements" | "mails" | "serviceName"> {
	/** Checks a second-factor code or backup code of the session's person; throws if it is wrong. */
	readonly checkCode: (ctx: GenericEndpointContext, code: string) => Promise<unknown>;
}

interface Note {
	readonly limits: readonly AttemptLimit[];
	readonly person?: Person | undefined;
	/** True if the code confirms the set-up of the second factor. */
	readonly isSetUp?: boolean;
}

interface Person {
	readonly id: string;
	readonly email: string;
	readonly name: string;
	readonly two_factor_enabled: boolean;
	readonly password: string | null;
}

/** Checks that run before the library's handler, by path. */
type Checks = Readonly<Record<string, (ctx: GenericEndpointContext) => Promise<Note | undefined>>>;

/**
 * Hooks around the library's sign-in. They limit guesses (`auth-attempts.ts`), remember browsers (`auth-device.ts`),
 * check new passwords, accept each code once, and mail the person about changes. Must be registered after `twoFactor`:
 * otherwise a sign-in that still needs a code would count as a session.
 */
export function signInGuardPlugin(parts: Guard) {
	const { log, statements } = parts;
	const attempts = createAttemptLimits(statements);
	const notes = new WeakMap<Request, Note>();
	const checks = createChecks(parts, attempts);

	function logRefusal(ctx: GenericEndpointContext, error: unknown, person?: Person): void {
		if (!isAPIError(error)) return;
		const code = error.body?.code ?? null;
		log.info("a sign-in was refused", { act: ctx.path, address: addressOf(ctx), user: person?.id ?? null, code });
	}

	const before = createAuthMiddleware(async (ctx) => {
		const note = await checks[ctx.path]?.(ctx).catch((error: unknown) => {
			logRefusal(ctx, error);
			throw error;
		});
		if (note !== undefined && ctx.request !== undefined) notes.set(ctx.request, note);
		// Overrides the page's choice: an intruder may have opened the other sessions.
		if (ctx.path === "/change-password") return { context: { body: { ...ctx.body, revokeOtherSessions: true } } };
		return;
	});

	const after = createAuthMiddleware(async (ctx) => {
		const note = ctx.request === undefined ? undefined : notes.get(ctx.request);
		const { returned, newSession } = ctx.context;
		if (isRefusal(returned)) {
			if (note !== undefined) logRefusal(ctx, returned, note.person);
			return;
		}
		const userId = newSession?.user.id;
		if (userId !== undefined) log.info("a person signed in", { act: ctx.path, address: addressOf(ctx), user: userId });
		if (note !== undefined) {
			await attempts.takeBack(note.limits);
			await afterwards(parts, ctx, note);
		}
		if (userId !== undefined) await rememberDevice(ctx, userId);
	});

	return {
		id: "guard",
		hooks: {
			before: [{ matcher: ({ path }) => path !== undefined && Object.hasOwn(checks, path), handler: before }],
			after: [{ matcher: () => true, handler: after }],
		},
	} satisfies BetterAuthPlugin;
}

function createChecks({ statements, mails, serviceName, checkCode }: Guard, attempts: AttemptLimits): Checks {
	async function password(ctx: GenericEndpointContext): Promise<Note | undefined> {
		const email = textField(ctx.body, "email").toLowerCase();
		if (email === "") return undefined;
		const person = await personOf(statements, { email });
		const device = await readDevice(ctx);
		const limits = passwordLimits({ email, userId: person?.id }, { address: addressOf(ctx), device });
		await attempts.count(limits);
		return { limits, person };
	}

	async function reset(ctx: GenericEndpointContext): Promise<Note> {
		// Ignores the expiry: the library checks it by this machine's clock; the database's may differ.
		const [row] = await statements<{ value: string }>`
			select value from verification where identifier = ${resetIdentifier(readResetToken(ctx))}`;
		const person = row && (await personOf(statements, { id: row.value }));
		const ownWords = person === undefined ? [] : [person.email, person.name];
		checkNewPassword(textField(ctx.body, "newPassword"), [serviceName, ...ownWords]);
		return { limits: [], person };
	}

	async function again(sessionId: string): Promise<Note> {
		const limits = passwordAgainLimits(sessionId);
		await attempts.count(limits);
		return { limits };
	}

	async function change(ctx: GenericEndpointContext): Promise<Note | undefined> {
		const session = await getSessionFromCtx(ctx);
		if (session === null) return undefined;
		checkNewPassword(textField(ctx.body, "newPassword"), [serviceName, session.user.email, session.user.name]);
		return again(session.session.id);
	}

	/** Refuses to replace an active second factor: for that the password alone would suffice. */
	async function enable(ctx: GenericEndpointContext): Promise<Note | undefined> {
		const session = await getSessionFromCtx(ctx);
		if (session === null) return undefined;
		if (session.user.twoFactorEnabled)
			throw signInError("TWO_FACTOR_ENABLED", "Two-factor authentication is already on. Turn it off first.");
		return again(session.session.id);
	}

	/** Requires password and code to weaken the sign-in: the holder of a stolen session may know the password. */
	async function weaken(ctx: GenericEndpointContext): Promise<Note | undefined> {
		const session = await getSessionFromCtx(ctx);
		if (session === null) return undefined;
		const note = await again(session.session.id);
		await ctx.context.password.checkPassword(session.user.id, ctx);
		if (!session.user.twoFactorEnabled) return note;
		const ofCode = await code(ctx);
		await checkCode(ctx, textField(ctx.body, "code"));
		return { limits: [...note.limits, ...(ofCode?.limits ?? [])] };
	}

	/** Runs before the library checks a code: finds person and challenge, applies the limits, and refuses a used code. */
	async function code(ctx: GenericEndpointContext): Promise<Note | undefined> {
		const asked = await challengeOf(statements, ctx);
		if (asked === undefined) return undefined;
		const { person, challenge, isSession } = asked;
		const limits = codeLimits({ userId: person.id, challenge }, await readDevice(ctx), {
			async challengeUsedUp() {
				if (!isSession) await statements`delete from verification where identifier = ${challenge}`;
			},
			async personUsedUp() {
				mails.changed(person.email, readLanguage(ctx), "codes guessed");
			},
		});
		await attempts.count(limits);
		const given = textField(ctx.body, "code");
		const isForTotp = ctx.path === "/two-factor/verify-totp";
		if (isForTotp && !isTotp(given)) throw invalidCode();
		// Applies to backup codes too: the library would accept the same code in several concurrent requests.
		if (!(await attempts.isFirstUse(person.id, given))) throw invalidCode();
		return { limits, person, isSetUp: isSession && !person.two_factor_enabled && isForTotp };
	}

	return {
		"/sign-in/email": password,
		"/reset-password": reset,
		"/change-password": change,
		"/two-factor/enable": enable,
		"/two-factor/disable": weaken,
		"/two-factor/generate-backup-codes": weaken,
		"/two-factor/verify-totp": code,
		"/two-factor/verify-backup-code": code,
	};
}

/** Finds the person and the challenge of a code. Like the library, prefers a session to an unfinished sign-in. */
async function challengeOf(statements: Statements, ctx: GenericEndpointContext) {
	const session = await getSessionFromCtx(ctx);
	if (session !== null) {
		const person = await personOf(statements, { id: session.user.id });
		return person && { person, challenge: session.session.id, isSession: true };
	}
	const cookie = ctx.context.createAuthCookie("two_factor");
	const challenge = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
	if (typeof challenge !== "string") return undefined;
	// Ignores the expiry: the library checks it by this machine's clock, and a guess must count until then.
	const [row] = await statements<{ value: string }>`select value from verification where identifier = ${challenge}`;
	const person = row && (await personOf(statements, { id: row.value }));
	return person && { person, challenge, isSession: false };
}

async function afterwards({ statements, mails }: Guard, ctx: GenericEndpointContext, note: Note): Promise<void> {
	const { newSession, session } = ctx.context;
	const id = newSession?.user.id ?? session?.user.id;
	const person = note.person ?? (id === undefined ? undefined : await personOf(statements, { id }));
	if (person === undefined) return;
	const tell = (change: Parameters<SignInMails["changed"]>[2]) =>
		mails.changed(person.email, readLanguage(ctx), change);
	if (ctx.path === "/sign-in/email") return stillGood(statements, ctx, person);
	if (ctx.path === "/reset-password") {
		await rememberDevice(ctx, person.id);
		// Deletes passkeys, which an intruder may have added, and sessions that began during the change.
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
	// Deletes reset links, unfinished sign-ins and trusted browsers of the time before the change.
	if (!ctx.path.startsWith("/two-factor/verify-") || note.isSetUp)
		await statements`delete from verification where value = ${person.id}`;
}

/** Ends the new session if password or second factor changed during the check: the change missed this session. */
async function stillGood(statements: Statements, ctx: GenericEndpointContext, person: Person): Promise<void> {
	const now = await personOf(statements, { id: person.id });
	if (now?.password === person.password && now.two_factor_enabled === person.two_factor_enabled) return;
	const { newSession } = ctx.context;
	if (newSession !== null) await statements`delete from session where token = ${newSession.session.token}`;
	await statements`delete from verification where value = ${person.id} and identifier like '2fa-%'`;
	ctx.context.setNewSession(null);
	throw signInError("INVALID_EMAIL_OR_PASSWORD", "Invalid email or password", { status: "UNAUTHORIZED" });
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

const addressOf = (ctx: GenericEndpointContext): string =>
	(ctx.headers === undefined ? null : getIp(ctx.headers, ctx.context.options)) ?? "unknown";

/** True for errors; false for redirects, which sign-ins with a provider throw too. */
const isRefusal = (returned: unknown): boolean => isAPIError(returned) && returned.statusCode >= 400;
const invalidCode = () => signInError("INVALID_CODE", "Invalid code", { status: "UNAUTHORIZED" });
