/** A form with more pieces is compared by its bytes: splitting it would block the event loop. */
const PIECES_MAX = 1_000;

/**
 * Content between the boundaries of a multipart form, so that a retry with another boundary compares equal. Null if it
 * is no such form.
 */
export function formPieces(contentType: string | null, body: Uint8Array): readonly Uint8Array[] | null {
	const [, quoted, plain] =
		/^multipart\/form-data\b.*?;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType ?? "") ?? [];
	const boundary = quoted ?? plain;
	if (boundary === undefined) return null;
	const delimiter = Buffer.from(`--${boundary}`, "latin1");
	const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
	const pieces: Uint8Array[] = [];
	for (let start = 0; ; ) {
		const end = bytes.indexOf(delimiter, start);
		pieces.push(bytes.subarray(start, end < 0 ? bytes.length : end));
		if (end < 0) return pieces;
		if (pieces.length >= PIECES_MAX) return null;
		start = end + delimiter.length;
	}
}
