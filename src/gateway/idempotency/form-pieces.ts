/** A form of so many pieces is told apart by its bytes alone: to look at each takes time in which nobody else is served. */
const PIECES_MAX = 1_000;

/**
 * What stands between the boundaries of a multipart form: what it says, whichever boundary its client drew for it, and by no
 * other boundary. Null for what is no such form.
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
