import { decodeField, make } from "multipasta";
import type { Clock } from "../../base/clock.ts";
import { withDeadline } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";

/** A multipart form with one file in it, read as it comes: its fields may stand before the file and behind it. */
export interface UploadForm {
	/** Reads up to the file; its name as the client gave it. Fault invalid_request if there is none. */
	file(): Promise<{ filename: string }>;
	/** The bytes of the file as they come. They must be read to their end before the rest of the form. */
	bytes(): AsyncGenerator<Uint8Array, void>;
	/** Reads the rest. All fields by name, of those that stand twice the last. */
	fields(): Promise<ReadonlyMap<string, string>>;
	/** Fields that have come so far. */
	known(): ReadonlyMap<string, string>;
	/** Lets go of what has not come yet. */
	close(): void;
}

const PARTS_MAX = 16;
const FIELD_BYTES_MAX = 1024;
/** A body that is slower than this is given up, after a time in which nobody is measured. */
const PACE_BYTES_PER_MS_MIN = 64;
const PACE_GRACE_MS = 60_000;

/**
 * `bytesMax`: of the whole body. Faults: unsupported_media_type, payload_too_large, invalid_request, request_timeout (a
 * body that comes too slowly, or breaks off).
 */
export function openUploadForm(request: Request, { clock, bytesMax }: { clock: Clock; bytesMax: number }): UploadForm {
	const type = request.headers.get("content-type") ?? "";
	if (!/^multipart\/form-data\b/i.test(type))
		throw new Fault("unsupported_media_type", "The body must be a form: `content-type: multipart/form-data`.");
	// What a small body becomes once it is unpacked nobody knows before.
	if ((request.headers.get("content-encoding") ?? "identity").toLowerCase() !== "identity")
		throw new Fault("unsupported_media_type", "The body must not be packed: send it without `content-encoding`.");
	if (Number(request.headers.get("content-length") ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);

	const fields = new Map<string, string>();
	const pieces: Uint8Array[] = [];
	let filename: string | undefined;
	let fileEnded = false;
	let formEnded = false;
	let problem: Fault | undefined;
	const malformed = () => {
		problem ??= new Fault("invalid_request", "The body is not a valid form.");
	};
	const parser = make({
		headers: { "content-type": type },
		maxParts: PARTS_MAX,
		maxFieldSize: FIELD_BYTES_MAX,
		isFile: ({ name }) => name === "file",
		onField: (info, value) => void fields.set(info.name, decodeField(info, value)),
		onFile(info) {
			if (filename !== undefined)
				problem ??= new Fault("invalid_request", "There must be one `file`.", { param: "file" });
			filename = info.filename ?? "";
			return (piece) => {
				if (piece === null) fileEnded = true;
				else pieces.push(piece);
			};
		},
		onError: malformed,
		onDone() {
			formEnded = true;
		},
	});

	const reader = request.body?.getReader();
	const startedMs = clock.monotonicMs();
	let received = 0;

	/** Reads and parses a piece of the body; false after the last one. */
	async function advance(): Promise<boolean> {
		const done = !(await parseNext());
		if (problem !== undefined) throw problem;
		if (done && !formEnded) throw new Fault("invalid_request", "The form ends before its last boundary.");
		return !done;
	}

	async function parseNext(): Promise<boolean> {
		const value = await nextPiece();
		if (value === undefined) return false;
		received += value.length;
		if (received > bytesMax) throw bodyTooLarge(bytesMax);
		try {
			parser.write(value);
		} catch {
			malformed();
		}
		return true;
	}

	async function nextPiece(): Promise<Uint8Array | undefined> {
		if (reader === undefined) return undefined;
		const dueMs = startedMs + PACE_GRACE_MS + received / PACE_BYTES_PER_MS_MIN;
		const late = () => new Fault("request_timeout", "The body was sent too slowly.");
		try {
			return (await withDeadline(clock, reader.read(), Math.max(0, dueMs - clock.monotonicMs()), late)).value;
		} catch (error) {
			if (error instanceof Fault) throw error;
			throw new Fault("request_timeout", "The body did not arrive in full.", { cause: error });
		}
	}

	return {
		async file() {
			while (filename === undefined && (await advance()));
			if (filename !== undefined) return { filename };
			throw new Fault("invalid_request", "`file` is missing.", { param: "file" });
		},
		async *bytes() {
			for (;;) {
				yield* pieces.splice(0);
				if (fileEnded || !(await advance())) break;
			}
			yield* pieces.splice(0);
		},
		async fields() {
			while (await advance());
			return fields;
		},
		known: () => fields,
		close: () => void reader?.cancel().catch(() => {}),
	};
}

function bodyTooLarge(bytesMax: number): Fault {
	return new Fault("payload_too_large", `The body is larger than ${Math.floor(bytesMax / (1024 * 1024))} MB.`);
}
