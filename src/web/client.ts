import { treaty } from "@elysiajs/eden";
import type { ConsoleApi } from "../console/views.ts";
import { ApiError, apiErrorOf, UNREACHABLE } from "./http.ts";
import { createSessionEnd } from "./session-end.ts";

/** Typed client of the console's routes. */

// A text that looks like a date, such as a key's name, stays a text.
export const client = treaty<ConsoleApi>(location.origin, { parseDate: false, keepDomain: true }).api.console;

export const sessionEnd = createSessionEnd();

/** Window event: the server no longer knows the session. */
export const SESSION_ENDED = "tollgate:session-ended";

/** Window event: the viewer no longer belongs to the account shown. */
export const ACCOUNT_GONE = "tollgate:account-gone";

type Given<T> = { [K in keyof T]?: Exclude<T[K], null | undefined | ""> };

/** A query without empty values. */
export function given<T extends object>(query: T): Given<T> {
	const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
	return Object.fromEntries(set) as Given<T>;
}

type Answer = { data: unknown; error: { value: unknown } | null; response: Response };
type DataOf<A> = A extends { error: null; data: infer Data } ? Data : never;

/** The data of an answer. Throws ApiError. */
export async function dataOf<A extends Answer>(asked: Promise<A>): Promise<DataOf<A>> {
	const mark = sessionEnd.mark();
	let answer: A;
	try {
		answer = await asked;
	} catch {
		throw new ApiError(UNREACHABLE, { status: 0, code: "unreachable" });
	}
	if (answer.error === null) return answer.data as DataOf<A>;
	// Without a response the request did not leave.
	if (!answer.response?.headers) throw new ApiError(UNREACHABLE, { status: 0, code: "unreachable" });
	const error = apiErrorOf(answer.response, answer.error.value);
	if (error.code === "session_required" && sessionEnd.noSession(mark)) dispatchEvent(new Event(SESSION_ENDED));
	if (error.code === "not_found" && error.param === "account") dispatchEvent(new Event(ACCOUNT_GONE));
	throw error;
}
