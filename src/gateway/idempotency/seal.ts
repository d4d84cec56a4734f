/** A complete HTTP answer as it was sent to the client. */
export interface StoredAnswer {
	readonly status: number;
	readonly headers: readonly (readonly [string, string])[];
	readonly body: Uint8Array;
}

/** Encryption of one claim's answer; needs the customer's API key and the `Idempotency-Key` header. */
export type AnswerCipher = Awaited<ReturnType<typeof createAnswerCipher>>;

const IV_BYTES = 12;
const LENGTH_BYTES = 4;
const SALT = new TextEncoder().encode("idempotency");

/** Derives keys by HKDF-SHA-256 (RFC 5869) from the API key's secret, which is not stored, and the header. */
export async function createAnswerCipher(secret: string, header: string, claimId: string) {
	const text = new TextEncoder();
	const secretKey = await crypto.subtle.importKey("raw", text.encode(secret), "HKDF", false, ["deriveBits"]);
	const derive = async (purpose: string) => {
		const info = text.encode(`${purpose} ${header}`);
		return new Uint8Array(
			await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: SALT, info }, secretKey, 256),
		);
	};
	const [proofKey, answerKey] = await Promise.all([derive("proof"), derive("answer")]);
	const key = await crypto.subtle.importKey("raw", answerKey, "AES-GCM", false, ["encrypt", "decrypt"]);
	const additionalData = text.encode(claimId);

	return {
		/** Keyed digest of path and body. `contentType`: to find a form's boundary, which the digest excludes. */
		proof(path: string, body: Uint8Array, contentType: string | null = null) {
			const hasher = new Bun.CryptoHasher("sha256", proofKey);
			const pieces = formPieces(contentType, body);
			if (pieces === null) return hasher.update(`${path}\n`).update(body).digest("base64");
			hasher.update(`${path} form\n`);
			for (const piece of pieces) hasher.update(`${piece.length}\n`).update(piece);
			return hasher.digest("base64");
		},
		/** Encrypts to `IV (12 bytes) | AES-256-GCM of (head length u32 | head as JSON | body)`. */
		async seal({ status, headers, body }: StoredAnswer) {
			const head = text.encode(JSON.stringify({ status, headers }));
			const plain = new Uint8Array(LENGTH_BYTES + head.length + body.length);
			new DataView(plain.buffer).setUint32(0, head.length);
			plain.set(head, LENGTH_BYTES);
			plain.set(body, LENGTH_BYTES + head.length);
			const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
			const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData }, key, plain));
			const all = new Uint8Array(IV_BYTES + sealed.length);
			all.set(iv);
			all.set(sealed, IV_BYTES);
			return all;
		},
		/** Decrypts an answer. Rejects if the data was altered or belongs to another claim. */
		async open(all: Uint8Array): Promise<StoredAnswer> {
			const iv = all.slice(0, IV_BYTES);
			const sealed = all.slice(IV_BYTES);
			const plain = new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData }, key, sealed));
			const length = new DataView(plain.buffer).getUint32(0);
			const head = JSON.parse(new TextDecoder().decode(plain.subarray(LENGTH_BYTES, LENGTH_BYTES + length)));
			return { status: head.status, headers: head.headers, body: plain.slice(LENGTH_BYTES + length) };
		},
	};
}

export function hashClaimId(keyId: string, header: string): string {
	return new Bun.CryptoHasher("sha256").update(`${keyId} ${header}`).digest("hex");
}

/** A form with more pieces is hashed with its boundary, because splitting it would block the event loop. */
const PIECES_MAX = 1_000;

/** Contents between a form's boundaries, so that a retry with another boundary has the same digest. Null if no form. */
function formPieces(contentType: string | null, body: Uint8Array): readonly Uint8Array[] | null {
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
