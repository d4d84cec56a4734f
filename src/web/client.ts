import { treaty } from "@elysiajs/eden";
import type { ConsoleApi } from "../console/views.ts";
import { parseApiError, unreachable } from "./http.ts";

// Client typed by the console's routes. With `parseDate: false` a key's name that looks like a date stays a text.
export const client = treaty<ConsoleApi>(location.origin, { parseDate: false, keepDomain: true }).api.console;

/** Event on `window`: the server refused the session or the account, so the viewer must be loaded again. */
export const VIEWER_STALE = "tollgate:viewer-stale";

type Answer = { data: unknown; error: { value: unknown } | null; response: Response };
type DataOf<A> = A extends { error: null; data: infer Data } ? Data : never;

/** Returns the data of a successful response; throws ApiError otherwise. */
export async function unwrap<A extends Answer>(asked: Promise<A>): Promise<DataOf<A>> {
	const answer = await asked.catch(() => undefined);
	if (answer?.error === null) return answer.data as DataOf<A>;
	// The client throws, or returns no headers, if the server was unreachable.
	if (!answer?.response?.headers) throw unreachable();
	const error = parseApiError(answer.response, answer.error.value);
	const isAccountGone = error.code === "not_found" && error.param === "account";
	if (error.code === "session_required" || isAccountGone) dispatchEvent(new Event(VIEWER_STALE));
	throw error;
}
