import type { APIError } from "better-auth/api";
import type { Statements } from "../../db/statements.ts";
import { countWithin, uncount } from "../rate-counter.ts";
import type { Device } from "./auth-device.ts";
import { signInError } from "./sign-in-error.ts";

/**
 * Guesses are counted before they are tried, in the database, and what was right is taken back: however many come at
 * once, through whichever console, no more than the limit are tried. Nobody is locked out by others: a browser that the
 * person signed in with before has counts of its own, and a mailed link makes a browser one of these.
 */
export interface Attempts {
	/** Counts one against each limit; Throws the library's error at the first that is used up. */
	count(limits: readonly Limit[]): Promise<void>;
	takeBack(limits: readonly Limit[]): Promise<void>;
	/** False if the same code was tried before, whether it was right or not. */
	isFirstUse(userId: string, code: string): Promise<boolean>;
}

export interface Limit {
	/** What is counted, in the names of its counts. */
	readonly what: string;
	readonly subject: string;
	readonly max: number;
	readonly windowMs: number;
	/** At the first attempt over the limit. */
	readonly onReached?: () => Promise<void>;
}

const MINUTE_MS = 60_000;
/** One place, or one browser, guessing at one person. */
const FROM_ONE = { max: 10, windowMs: 10 * MINUTE_MS };
/** Everybody whom nobody knows, together, guessing at one person. */
const PASSWORDS_OF_PERSON = { max: 100, windowMs: 60 * MINUTE_MS };
const CODES_OF_PERSON = { max: 10, windowMs: 60 * MINUTE_MS };
const CODES_OF_CHALLENGE = { max: 5, windowMs: 60 * MINUTE_MS };
/** Longer than a code is good, which is a minute and a half. */
const CODE_REMEMBERED_MS = 5 * MINUTE_MS;

export function createAttempts(statements: Statements): Attempts {
	return {
		async count(limits) {
			for (const { what, subject, max, windowMs, onReached } of limits) {
				const { count, endsInMs } = await countWithin(statements, what, subject, windowMs);
				if (count <= max) continue;
				if (count === max + 1) await onReached?.();
				throw tooMany(endsInMs);
			}
		},
		async takeBack(limits) {
			for (const { what, subject } of limits) await uncount(statements, what, subject);
		},
		async isFirstUse(userId, code) {
			const { count } = await countWithin(statements, "code", `${userId} ${code}`, CODE_REMEMBERED_MS);
			return count === 1;
		},
	};
}

/** `userId`: of the person with this address, if there is one. `address`: of the client, or its network. */
export function passwordLimits(
	who: { readonly email: string; readonly userId: string | undefined },
	from: { readonly address: string; readonly device: Device | null },
): Limit[] {
	if (from.device !== null && who.userId !== undefined && from.device.userIds.includes(who.userId))
		return [{ what: "passwords from device", subject: `${from.device.id} ${who.userId}`, ...FROM_ONE }];
	return [
		{ what: "passwords from address", subject: `${from.address} ${who.email}`, ...FROM_ONE },
		{ what: "passwords of person", subject: who.email, ...PASSWORDS_OF_PERSON },
	];
}

/** A signed-in browser that gives the password again. */
export function passwordAgainLimits(sessionId: string): Limit[] {
	return [{ what: "passwords of session", subject: sessionId, ...FROM_ONE }];
}

/** `challenge`: what asked for the code, a sign-in or a session. */
export function codeLimits(
	who: { readonly userId: string; readonly challenge: string },
	device: Device | null,
	when: { challengeUsedUp: () => Promise<void>; personUsedUp: () => Promise<void> },
): Limit[] {
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
