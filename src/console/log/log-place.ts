import { ConsoleError } from "../console-error.ts";

/** Position in the request log, newest first: a request's time, and its id for equal times. */
export interface LogPlace {
	/** Microseconds since 1970, decimal. */
	readonly micros: string;
	/** UUID. */
	readonly uuid: string;
}

/** Parses `micros.uuid`. Fault invalid_request. */
export function readPlace(text: string): LogPlace {
	const [, micros, uuid] = /^(\d{1,18})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(text) ?? [];
	if (micros === undefined || uuid === undefined)
		throw new ConsoleError("invalid_request", "That is no page.", { param: "after" });
	return { micros, uuid };
}

export function placeText({ micros, uuid }: LogPlace): string {
	return `${micros}.${uuid}`;
}

/** Negative if `a` comes first. Postgres compares the same way. */
export function comparePlaces(a: LogPlace, b: LogPlace): number {
	const apart = Number(b.micros) - Number(a.micros);
	if (apart !== 0) return apart;
	return a.uuid === b.uuid ? 0 : a.uuid > b.uuid ? -1 : 1;
}
