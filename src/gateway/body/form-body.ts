import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { bodyTooLarge, readBytes } from "./bytes-body.ts";

/** A file takes its time on a slow line, but not for ever. */
const READ_DEADLINE_MS = 10 * 60_000;

/**
 * Reads a multipart form of at most `bytesMax` bytes. Its files stay where the parser put them and are never copied.
 * Faults: unsupported_media_type, payload_too_large, request_timeout, invalid_request.
 */
export async function readForm(request: Request, bytesMax: number, clock: Clock): Promise<FormData> {
	const type = request.headers.get("content-type") ?? "";
	if (!/^multipart\/form-data\b/i.test(type))
		throw new Fault("unsupported_media_type", "The body must be a form: `content-type: multipart/form-data`.");
	const declared = request.headers.get("content-length");
	if (Number(declared ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
	const late = Promise.withResolvers<never>();
	const cancel = clock.after(READ_DEADLINE_MS, () =>
		late.reject(new Fault("request_timeout", "The body was sent too slowly.")),
	);
	try {
		// A body without a length is counted while it arrives.
		const source =
			declared === null
				? new Response(await readBytes(request, bytesMax, clock), { headers: { "content-type": type } })
				: request;
		return await Promise.race([source.formData(), late.promise]);
	} catch (error) {
		if (error instanceof Fault) throw error;
		throw new Fault("invalid_request", "The body is not a valid form.", { cause: error });
	} finally {
		cancel();
	}
}
