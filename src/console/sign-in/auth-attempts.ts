import type { APIError } from "better-auth/api";
import type { Statements } from "../../db/statements.ts";
import { countWithin, subtractCount } from "../rate-counter.ts";
import type { KnownBrowser } from "./auth-device.ts";
import { signInError } from "./sign-in-error.ts";

export type AttemptLimits = ReturnType<typeof createAttemptLimits>;

export interface AttemptLimit {
	readonly what: string;
	readonly subject: string;
	readonly max: number;
	readonly windowMs: number;
	readonly onReached?: () => Promise<void>;
}

const MINUTE_MS = 60_000;
/** Failed attempts for one person from one network or one browser. */
const FROM_ONE = { max: 10, windowMs: 10 * MINUTE_MS };
/** Failed passwords for one person from all unknown browsers together. */
const PASSWORDS_OF_PERSON = { max: 100, windowMs: 60 * MINUTE_MS };
const CODES_OF_PERSON = { max: 10, windowMs: 60 * MINUTE_MS };
const CODES_OF_CHALLENGE = { max: 5, windowMs: 60 * MINUTE_MS };
/** Time for which a tried code is remembered; a code is valid for at most 90 s. */
const CODE_REMEMBERED_MS = 5 * MINUTE_MS;

/**
 * Limits guesses of passwords and codes. Counts an attempt before it runs and subtracts it on success, so that
 * concurrent attempts stay within the limit. Strangers cannot lock a person out: browsers that the person has used
 * before have their own counters.
 */
export function createAttemptLimits(statements: Statements) {
	return {
		/** Counts an attempt towards each limit. Throws the sign-in library's error if a limit is exceeded. */
		async count(limits: readonly AttemptLimit[]): Promise<void> {
			for (const { what, subject, max, windowMs, onReached } of limits) {
				const { count, endsInMs } = await countWithin(statements, what, subject, windowMs);
				if (count <= max) continue;
				if (count === max + 1) await onReached?.();
				throw tooMany(endsInMs);
			}
		},
		async takeBack(limits: readonly AttemptLimit[]): Promise<void> {
			for (const { what, subject } of limits) await subtractCount(statements, what, subject);
		},
		/** Returns false if this code was tried before, successfully or not. */
		async isFirstUse(userId: string, code: string): Promise<boolean> {
			return (await countWithin(statements, "code", `${userId} ${code}`, CODE_REMEMBERED_MS)).count === 1;
		},
	};
}

export function passwordLimits(
	who: { readonly email: string; readonly userId: string | undefined },
	from: { readonly address: string; readonly device: KnownBrowser | null },
): AttemptLimit[] {
	if (from.device !== null && who.userId !== undefined && from.device.userIds.includes(who.userId))
		return [{ what: "passwords from device", subject: `${from.device.id} ${who.userId}`, ...FROM_ONE }];
	return [
		{ what: "passwords from address", subject: `${from.address} ${who.email}`, ...FROM_ONE },
		{ what: "passwords of person", subject: who.email, ...PASSWORDS_OF_PERSON },
	];
}

export function passwordAgainLimits(sessionId: string): AttemptLimit[] {
	return [{ what: "passwords of session", subject: sessionId, ...FROM_ONE }];
}

/** Limits of codes. `challenge` identifies the sign-in or session that requires the code. */
export function codeLimits(
	who: { readonly userId: string; readonly challenge: string },
	device: KnownBrowser | null,
	when: { challengeUsedUp: () => Promise<void>; personUsedUp: () => Promise<void> },
): AttemptLimit[] {
	const isKnown = device?.userIds.includes(who.userId) ?? false;
	return [
		{ what: "codes of challenge", subject: who.challenge, ...CODES_OF_CHALLENGE, onReached: when.challengeUsedUp },
		isKnown
			? { what: "codes from device", subject: `${device?.id} ${who.userId}`, ...CODES_OF_PERSON }
			: { what: "codes of person", subject: who.userId, ...CODES_OF_PERSON, onReached: when.personUsedUp },
	];
}

function tooMany(endsInMs: number): APIError {
	const retryAfterS = Math.max(1, Math.ceil(endsInMs / 1000));
	return signInError(
		"TOO_MANY_ATTEMPTS",
		"Too many attempts. Try again later, sign in with a browser that you used before, or set a new password by mail.",
		{ status: "TOO_MANY_REQUESTS", headers: { "retry-after": String(retryAfterS) } },
	);
}
