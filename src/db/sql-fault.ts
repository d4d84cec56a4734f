import { Fault } from "../base/fault.ts";
import type { TextValues } from "../base/translate.ts";
import { hasCause } from "./outage.ts";

/** SQLSTATEs that functions in `db/functions` raise. The message is the id of a text, the detail its values as JSON. */
const NOT_FOUND = "TG002";
const NOT_COVERED = "TG003";
const CONFLICT = "TG004";
const STALE = "TG005";
const UNIQUE_VIOLATION = "23505";

/** SQLSTATEs for text that Postgres cannot store, because of NUL, invalid bytes or invalid escapes. */
const UNSTORABLE = new Set(["22021", "22P05"]);

/** True if a statement failed because of a client's text, since all texts of the service itself can be stored. */
export function isUnstorableText(error: unknown): boolean {
	return hasCause(error, (cause) => UNSTORABLE.has(String((cause as { code?: unknown }).code)));
}

/** Converts an expected SQL error to a Fault and rethrows others. `taken`: text of the Fault for a unique violation. */
export function faultOfSql(error: unknown, taken?: string): Fault {
	const { code, message, detail } = error as { code?: unknown; message?: unknown; detail?: unknown };
	const text = () => {
		const values = typeof detail === "string" ? (JSON.parse(detail) as TextValues) : {};
		return [String(message), { cause: error, values }] as const;
	};
	if (code === NOT_FOUND) return new Fault("not_found", ...text());
	if (code === CONFLICT) return new Fault("conflict", ...text());
	if (code === STALE) return new Fault("precondition_failed", ...text());
	if (code === NOT_COVERED)
		return new Fault("conflict", "The available credit does not cover this amount.", { cause: error });
	if (code === UNIQUE_VIOLATION && taken !== undefined) return new Fault("conflict", taken, { cause: error });
	throw error;
}
