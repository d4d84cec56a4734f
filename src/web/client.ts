import { treaty } from "@elysiajs/eden";
import type { ConsoleApi } from "../console/views.ts";
import { apiErrorOf, unreachable } from "./http.ts";

// A text that looks like a date, such as a key's name, stays a text.
export const client = treaty<ConsoleApi>(location.origin, { parseDate: false, keepDomain: true }).api.console;

/** Window event: the server no longer knows the viewer's session or the account shown, so the viewer is read again. */
export const VIEWER_STALE = "tollgate:viewer-stale";

type Answer = { data: unknown; error: { value: unknown } | null; response: Response };
type DataOf<A> = A extends { error: null; data: infer Data } ? Data : never;

/** The data of an answer. Throws ApiError. */
export async function dataOf<A extends Answer>(asked: Promise<A>): Promise<DataOf<A>> {
	const answer = await asked.catch(() => undefined);
	if (answer?.error === null) return answer.data as DataOf<A>;
	// Without a response the request did not leave.
	if (!answer?.response?.headers) throw unreachable();
	const error = apiErrorOf(answer.response, answer.error.value);
	const isAccountGone = error.code === "not_found" && error.param === "account";
	if (error.code === "session_required" || isAccountGone) dispatchEvent(new Event(VIEWER_STALE));
	throw error;
}
