const INTERNAL_SECRET_BYTES = 32;

/** A secret shared only by the processes of one `serve`, or by the planes of one process. */
export function newInternalSecret(): string {
	return Buffer.from(crypto.getRandomValues(new Uint8Array(INTERNAL_SECRET_BYTES))).toString("hex");
}
