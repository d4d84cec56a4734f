const INTERNAL_SECRET_BYTES = 32;

/** For the processes of one `serve`, or the planes of one process: nobody else ever knows it. */
export function newInternalSecret(): string {
	return Buffer.from(crypto.getRandomValues(new Uint8Array(INTERNAL_SECRET_BYTES))).toString("hex");
}
