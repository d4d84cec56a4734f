import { ConsoleError } from "../console-error.ts";

/** Position in the request log, newest first: a request's time and, for equal times, its id. */
export interface LogCursor {
	/** Microseconds since 1970, decimal. */
	readonly micros: string;
	readonly uuid: string;
}

/** Parses `micros.uuid`. Cursors sort as texts: microseconds have 16 digits until 2286. Fault `invalid_request`. */
export function parseCursor(text: string): LogCursor {
	const [, micros, uuid] = /^(\d{1,18})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(text) ?? [];
	if (micros === undefined || uuid === undefined)
		throw new ConsoleError("invalid_request", "`after` must be the `next` value of the previous page.", {
			param: "after",
		});
	return { micros, uuid };
}
