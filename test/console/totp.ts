import { createHmac } from "node:crypto";

/** Returns the six-digit code (RFC 6238) for a time. `secret` is in base 32, as in an `otpauth:` URL. */
export function totpCode(secret: string, atMs = Date.now()): string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	let bits = "";
	for (const character of secret.replace(/=+$/, "")) bits += alphabet.indexOf(character).toString(2).padStart(5, "0");
	const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
	const counter = Buffer.alloc(8);
	counter.writeBigUInt64BE(BigInt(Math.floor(atMs / 30_000)));
	const digest = createHmac("sha1", key).update(counter).digest();
	const offset = (digest.at(-1) ?? 0) & 15;
	return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
