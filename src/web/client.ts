import { treaty } from "@elysiajs/eden";
import type { ConsoleApi } from "../console/views.ts";
import { ApiError, apiErrorOf, UNREACHABLE } from "./http.ts";
import { createSessionEnd } from "./session-end.ts";

/** The typed way to the console's own routes: paths, parameters and answers are those of the server's code. */

// A text that looks like a date, such as the name of a key, must stay a text.
export const client = treaty<ConsoleApi>(location.origin, { parseDate: false, keepDomain: true }).api.console;

export const sessionEnd = createSessionEnd();

/** Told to the window when the server no longer knows the session: it ended, or was ended elsewhere. */
export const SESSION_ENDED = "tollgate:session-ended";

/** Told to the window when the account that is looked at is not the viewer's any more. */
export const ACCOUNT_GONE = "tollgate:account-gone";

type Given<T> = { [K in keyof T]?: Exclude<T[K], null | undefined | ""> };

/** A query without what is empty. */
export function given<T extends object>(query: T): Given<T> {
	const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
	return Object.fromEntries(set) as Given<T>;
}

type Answer = { data: unknown; error: { value: unknown } | null; response: Response };
type DataOf<A> = A extends { error: null; data: infer Data } ? Data : never;

/** The data of an answer, as its request leaves. Throws ApiError. */
export async function dataOf<A extends Answer>(asked: Promise<A>): Promise<DataOf<A>> {
	const mark = sessionEnd.mark();
	let answer: A;
	try {
		answer = await asked;
	} catch {
		throw new ApiError(UNREACHABLE, { status: 0, code: "unreachable" });
	}
	if (answer.error === null) return answer.data as DataOf<A>;
	// Without a response the request never left.
	if (!answer.response?.headers) throw new ApiError(UNREACHABLE, { status: 0, code: "unreachable" });
	const error = apiErrorOf(answer.response, answer.error.value);
	if (error.code === "session_required" && sessionEnd.noSession(mark)) dispatchEvent(new Event(SESSION_ENDED));
	if (error.code === "not_found" && error.param === "account") dispatchEvent(new Event(ACCOUNT_GONE));
	throw error;
}
