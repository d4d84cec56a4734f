import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { checkStructure, type RawValue } from "../../base/json-structure.ts";
import { createTurn, type Turn } from "../../base/turn.ts";
import type { TakesBytes } from "./bytes-body.ts";
import { declaredBytes, inTime, readChunked, TAKES_ANY } from "./bytes-body.ts";

/** A body that takes longer than this to arrive is given up, however steadily it trickles. */
const READ_DEADLINE_MS = 60_000;
/** A longer text is looked at, parsed, measured and sent in steps, and others have their turn between two that took long. */
const LONG_CHARS = 256 * 1024;
/** A megabyte takes less for all of it: what waits between steps outlives collections, and one that is done at once does not. */
const TURN_MS = 2;
/** Up to here the runtime makes the text in one step of a millisecond or two: what is ASCII it does not even copy. */
const ONE_STEP_BYTES = 4 * 1024 * 1024;

/** What a body says. */
export interface JsonBody {
	readonly value: Record<string, unknown>;
	/** The field that was asked for, as it came. */
	readonly raw: RawValue | undefined;
	/** Of a large one. */
	readonly turn: Turn | undefined;
}

/**
 * Reads a JSON object of at most `bytesMax` bytes. Faults: unsupported_media_type, payload_too_large, request_timeout
 * (a client that sends its body too slowly, or leaves), invalid_request (not JSON, no object, with more structure than `checkStructure` allows).
 * `field`: the list or object of this name is given as it is written, too.
 */
export async function readJson(
	request: Request,
	bytesMax: number,
	clock: Clock,
	takes: TakesBytes = TAKES_ANY,
	field?: string,
): Promise<JsonBody> {
	const type = request.headers.get("content-type");
	if (type !== null && !/^application\/(?:[\w.+-]+\+)?json\b/i.test(type)) {
		throw new Fault(
			"unsupported_media_type",
			"The body must be JSON: set the header `content-type: application/json`.",
		);
	}
	const text = await readText(request, bytesMax, clock, takes);
	const turn = text.length >= LONG_CHARS ? createTurn(TURN_MS) : undefined;
	const checked = checkStructure(text, field);
	const raw = checked instanceof Promise ? await checked : checked;
	if (turn?.isOver()) await turn.next();
	const value = parseJson(text);
	if (typeof value !== "object" || value === null || Array.isArray(value))
		throw new Fault("invalid_request", "The body must be a JSON object.");
	if (turn?.isOver()) await turn.next();
	return { value: value as Record<string, unknown>, raw, turn };
}

function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw new Fault("invalid_request", "The body is not valid JSON.", { cause });
	}
}

function readText(request: Request, bytesMax: number, clock: Clock, takes: TakesBytes): Promise<string> {
	const declared = declaredBytes(request, bytesMax, takes);
	// To ask for the stream of a body costs more than to read it whole.
	if (declared === null && request.body !== null)
		return decoded(readChunked(request.body, { bytesMax, clock, deadlineMs: READ_DEADLINE_MS, takes }));
	if (declared === null || declared <= ONE_STEP_BYTES) return inTime(clock, READ_DEADLINE_MS, request.text());
	return decoded(inTime(clock, READ_DEADLINE_MS, request.bytes()));
}

/** In slices: text beyond ASCII takes up to half a millisecond a megabyte. */
async function decoded(reading: Promise<Uint8Array<ArrayBuffer>>): Promise<string> {
	const bytes = await reading;
	const turn = createTurn();
	const slices: string[] = [];
	for (let from = 0; from < bytes.length; ) {
		let to = Math.min(from + LONG_CHARS, bytes.length);
		// No character is cut: it has three bytes at most behind its first.
		for (let back = 0; back < 3 && ((bytes[to] ?? 0) & 0xc0) === 0x80; back += 1) to -= 1;
		slices.push(new TextDecoder("utf-8", { ignoreBOM: from > 0 }).decode(bytes.subarray(from, to)));
		from = to;
		if (turn.isOver()) await turn.next();
	}
	const [text, ...others] = slices;
	if (text === undefined || others.length === 0) return text ?? "";
	await turn.next();
	return slices.join("");
}
