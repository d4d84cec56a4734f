import { Fault, type FaultCode, type FaultDetail } from "../base/fault.ts";
import type { Language } from "../base/language.ts";
import type { Log } from "../base/log.ts";
import type { TextId } from "../base/translate.ts";
import { isDatabaseDown } from "../db/outage.ts";
import { errorBody, faultStatus, toFault } from "../gateway/error-body.ts";

/** Expected failure of the console. Without a German translation of its text in `de.json` the call does not compile. */
export class ConsoleError extends Fault {
	constructor(code: FaultCode, text: TextId, detail: FaultDetail = {}) {
		super(code, text, detail);
	}
}

export const cursorRefused = () =>
	new ConsoleError("invalid_request", "`after` must be the `next` value of the previous page.", { param: "after" });

/** Builds the response for any error: `{ error: { message, type, code, param, request_id } }`. */
export function consoleErrorResponse(
	error: unknown,
	requestId: string,
	{ log, language }: { log: Log; language: Language },
): Response {
	const fault = loggedFault(error, requestId, log);
	const body = { error: { ...errorBody(fault, language).error, request_id: requestId } };
	const headers: Record<string, string> = { "content-type": "application/json" };
	if (fault.retryAfterS !== undefined) headers["retry-after"] = String(fault.retryAfterS);
	return new Response(JSON.stringify(body), { status: faultStatus(fault), headers });
}

export function loggedFault(error: unknown, requestId: string, log: Log): Fault {
	const fault = !(error instanceof Fault) && isDatabaseDown(error) ? databaseAway(error) : toFault(error);
	if (fault.code === "service_unavailable" && fault.cause !== undefined)
		log.info("a console request was refused", { request: requestId, error: fault.cause });
	if (fault.code === "internal_error") log.error("a console request failed", { request: requestId, error });
	return fault;
}

export function databaseAway(cause: unknown): Fault {
	return new ConsoleError("service_unavailable", "The database is unavailable. Please try again.", {
		retryAfterS: 2,
		cause,
	});
}

/** Converts the framework's validation errors to faults, whose texts repeat nothing of the request. */
export function faultOfElysia(error: unknown, code: string | number): unknown {
	if (code === "NOT_FOUND") return new ConsoleError("not_found", "There is no such page.");
	if (code === "PARSE") return new ConsoleError("invalid_request", "The request body is not valid JSON.");
	if (code === "VALIDATION")
		return new ConsoleError("invalid_request", "A field is missing or malformed.", { param: paramOf(error) });
	return error;
}

function paramOf(error: unknown): string | null {
	try {
		const path = (error as { all?: { path?: unknown }[] }).all?.[0]?.path;
		if (typeof path !== "string") return null;
		const name = path.replace(/^\//, "").replaceAll("/", ".");
		return /^[A-Za-z0-9_.]{1,64}$/.test(name) ? name : null;
	} catch {
		return null;
	}
}
