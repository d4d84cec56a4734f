import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { bodyTooLarge, inTime, readChunked } from "./bytes-body.ts";

/** A body that takes longer than this to arrive is given up, however steadily it trickles. */
const READ_DEADLINE_MS = 60_000;
/** Deeper than any request or JSON schema that a person wrote; what is nested without end costs a serializer its stack. */
const DEPTH_MAX = 128;

/** A body as it came, and what it says. */
export interface JsonBody {
	readonly text: string;
	readonly value: Record<string, unknown>;
}

/**
 * Reads a JSON object of at most `bytesMax` bytes. Faults: unsupported_media_type, payload_too_large, request_timeout
 * (a client that sends its body too slowly, or leaves), invalid_request (not JSON, no object, nested too deeply).
 */
export async function readJson(request: Request, bytesMax: number, clock: Clock): Promise<JsonBody> {
	const type = request.headers.get("content-type");
	if (type !== null && !/^application\/(?:[\w.+-]+\+)?json\b/i.test(type)) {
		throw new Fault(
			"unsupported_media_type",
			"The body must be JSON: set the header `content-type: application/json`.",
		);
	}
	const text = await readText(request, bytesMax, clock);
	const value = parseJson(text);
	if (typeof value !== "object" || value === null || Array.isArray(value))
		throw new Fault("invalid_request", "The body must be a JSON object.");
	if (isDeeperThan(value, DEPTH_MAX))
		throw new Fault("invalid_request", `The body is nested more than ${DEPTH_MAX} levels deep.`);
	return { text, value: value as Record<string, unknown> };
}

function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw new Fault("invalid_request", "The body is not valid JSON.", { cause });
	}
}

function isDeeperThan(value: object, depth: number): boolean {
	if (depth === 0) return true;
	if (Array.isArray(value))
		return value.some((child) => typeof child === "object" && child !== null && isDeeperThan(child, depth - 1));
	for (const name in value) {
		const child = (value as Record<string, unknown>)[name];
		if (typeof child === "object" && child !== null && isDeeperThan(child, depth - 1)) return true;
	}
	return false;
}

async function readText(request: Request, bytesMax: number, clock: Clock): Promise<string> {
	const declared = request.headers.get("content-length");
	if (declared !== null && Number(declared) > bytesMax) throw bodyTooLarge(bytesMax);
	// To ask for the stream of a body costs more than to read it whole.
	return declared === null && request.body !== null
		? new TextDecoder().decode(await readChunked(request.body, { bytesMax, clock, deadlineMs: READ_DEADLINE_MS }))
		: inTime(clock, READ_DEADLINE_MS, request.text());
}
