import { Fault } from "../base/fault.ts";
import { someCause } from "./outage.ts";

/** Raised by our own functions in `db/functions`; their texts are written for whoever called. */
const NOT_FOUND = "TG002";
const NOT_COVERED = "TG003";
const CONFLICT = "TG004";
const STALE = "TG005";
const UNIQUE_VIOLATION = "23505";

/** Texts that Postgres cannot hold: a NUL, and bytes or escapes that are no character. */
const UNSTORABLE = new Set(["22021", "22P05"]);

/** Whether a statement failed by a text that came from outside: nothing of ours has a character that cannot be stored. */
export function isUnstorableText(error: unknown): boolean {
	return someCause(error, (cause) => UNSTORABLE.has(String((cause as { code?: unknown }).code)));
}

/**
 * The expected failure that a statement ended with; anything else is thrown on as it is.
 * `taken`: what to say if a value that must be unique is in use.
 */
export function faultOfSql(error: unknown, taken?: string): Fault {
	const { code, message } = error as { code?: unknown; message?: unknown };
	if (code === NOT_FOUND) return new Fault("not_found", String(message), { cause: error });
	if (code === CONFLICT) return new Fault("conflict", String(message), { cause: error });
	if (code === STALE) return new Fault("precondition_failed", String(message), { cause: error });
	if (code === NOT_COVERED) return new Fault("conflict", "The available credit does not cover it.", { cause: error });
	if (code === UNIQUE_VIOLATION && taken !== undefined) return new Fault("conflict", taken, { cause: error });
	throw error;
}
