import { Busboy, type BusboyInstance } from "@fastify/busboy";
import { type Clock, withDeadline } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { nextTurn } from "../../base/time-slice.ts";
import { formType } from "../body/bytes-body.ts";

const FIELDS_MAX = 16;
const FIELD_BYTES_MAX = 1024;
const HEADER_PAIRS_MAX = 16;
const HEADER_BYTES_MAX = 8 * 1024;
/** After this many parsed bytes the parser yields to other requests. */
const PARSED_BYTES = 128 * 1024;
/** Minimum speed of an upload; a slower upload is aborted after a grace period. */
const PACE_BYTES_PER_MS_MIN = 64;
const PACE_GRACE_MS = 60_000;

/**
 * Parses a multipart form with a file as it arrives; fields may be before or after the file. `bytesMax` limits the
 * whole body. Faults: unsupported_media_type, payload_too_large, invalid_request, request_timeout.
 */
export function openUploadForm(request: Request, { clock, bytesMax }: { clock: Clock; bytesMax: number }) {
	const type = formType(request);
	if (Number(request.headers.get("content-length") ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);

	const fields = new Map<string, string>();
	const pieces: Uint8Array[] = [];
	let filename: string | undefined;
	let fileEnded = false;
	const failed = Promise.withResolvers<never>();
	failed.promise.catch(() => {});
	const malformed = () =>
		failed.reject(new Fault("invalid_request", "The request body is not a valid multipart form."));
	const second = () =>
		failed.reject(new Fault("invalid_request", "The form must have exactly one `file`.", { param: "file" }));
	const ended = Promise.withResolvers<void>();
	const parser = createParser(type)
		.on("field", (name, value, _, isCut) => {
			if (isCut) malformed();
			else fields.set(name, value);
		})
		.on("file", (_, stream, name) => {
			filename = name ?? "";
			stream.on("data", (piece: Uint8Array) => void pieces.push(piece));
			stream.on("error", malformed);
			stream.on("end", () => (fileEnded = true));
		})
		.on("filesLimit", second)
		.on("fieldsLimit", malformed)
		.on("partsLimit", malformed)
		.on("error", malformed)
		.on("finish", () => ended.resolve());

	const reader = request.body?.getReader();
	const startedMs = clock.monotonicMs();
	let received = 0;
	let parsed = 0;
	let bodyEnded = false;

	/** Reads and parses one chunk; returns false at the end of the body. */
	async function advance(): Promise<boolean> {
		if (bodyEnded) return false;
		const dueMs = startedMs + PACE_GRACE_MS + received / PACE_BYTES_PER_MS_MIN;
		const late = () => new Fault("request_timeout", "The request body was sent too slowly.");
		const work = Promise.race([parseNext(), failed.promise]);
		bodyEnded = !(await withDeadline(clock, work, Math.max(0, dueMs - clock.monotonicMs()), late));
		return !bodyEnded;
	}

	async function parseNext(): Promise<boolean> {
		const value = await nextPiece();
		if (value === undefined) {
			parser.end();
			await ended.promise;
			return false;
		}
		received += value.length;
		if (received > bytesMax) throw bodyTooLarge(bytesMax);
		for (let at = 0; at < value.length; ) {
			if (parsed >= PARSED_BYTES) {
				parsed = 0;
				await nextTurn();
			}
			const slice = value.subarray(at, at + PARSED_BYTES - parsed);
			await new Promise<void>((resolve) => parser.write(slice, () => resolve()));
			at += slice.length;
			parsed += slice.length;
		}
		return true;
	}

	async function nextPiece(): Promise<Uint8Array | undefined> {
		try {
			return (await reader?.read())?.value;
		} catch (error) {
			throw new Fault("request_timeout", "The request body is incomplete. Please send the request again.", {
				cause: error,
			});
		}
	}

	return {
		/** Reads up to the start of the file and returns the file's name. Fault invalid_request if the form has no file. */
		async file(): Promise<{ filename: string }> {
			while (filename === undefined && (await advance()));
			if (filename !== undefined) return { filename };
			throw new Fault("invalid_request", "`file` is missing.", { param: "file" });
		},
		/** The file's bytes as they arrive. Read all of them before calling `fields`. */
		async *bytes(): AsyncGenerator<Uint8Array, void> {
			for (;;) {
				yield* pieces.splice(0);
				if (fileEnded || !(await advance())) break;
			}
			yield* pieces.splice(0);
		},
		/** Reads the remaining form and returns all fields by name; of fields with the same name the last one. */
		async fields(): Promise<ReadonlyMap<string, string>> {
			while (await advance());
			return fields;
		},
		known: (): ReadonlyMap<string, string> => fields,
		giveUp: failed.reject,
		pace: () => received / Math.max(1, clock.monotonicMs() - startedMs),
		close() {
			parser.destroy();
			// The listener receives the rest.
			reader?.releaseLock();
		},
	};
}

/** Creates the form's parser. Fault invalid_request if the content type has no boundary. */
function createParser(type: string): BusboyInstance {
	try {
		return new Busboy({
			headers: { "content-type": type },
			isPartAFile: (name) => name === "file",
			limits: {
				files: 1,
				fields: FIELDS_MAX,
				parts: FIELDS_MAX + 2,
				fieldSize: FIELD_BYTES_MAX,
				headerPairs: HEADER_PAIRS_MAX,
				headerSize: HEADER_BYTES_MAX,
			},
		});
	} catch (error) {
		throw new Fault("invalid_request", "The request body is not a valid multipart form.", { cause: error });
	}
}

function bodyTooLarge(bytesMax: number): Fault {
	return new Fault("payload_too_large", `The body is larger than ${Math.floor(bytesMax / (1024 * 1024))} MB.`);
}
