import { createHmac } from "node:crypto";
import { PASSWORD, type Person } from "./person.ts";

/** Milliseconds for which a code is the current one. */
export const STEP_MS = 30_000;

/** Returns the six-digit code (RFC 6238) for a time. `secret` is in base 32, as in an `otpauth:` URL. */
export function totpCode(secret: string, atMs = Date.now()): string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	let bits = "";
	for (const character of secret.replace(/=+$/, "")) bits += alphabet.indexOf(character).toString(2).padStart(5, "0");
	const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
	const counter = Buffer.alloc(8);
	counter.writeBigUInt64BE(BigInt(Math.floor(atMs / STEP_MS)));
	const digest = createHmac("sha1", key).update(counter).digest();
	const offset = (digest.at(-1) ?? 0) & 15;
	return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

/** Turns a person's two-factor sign-in on. `next` returns the code of the next time step, which is already valid. */
export async function turnOnTwoFactor(person: Pick<Person, "send">) {
	const { body } = await person.send("POST", "/api/auth/two-factor/enable", { password: PASSWORD });
	const secret = new URL(body.totpURI).searchParams.get("secret") ?? "";
	const used = totpCode(secret);
	const { status } = await person.send("POST", "/api/auth/two-factor/verify-totp", { code: used });
	if (status !== 200) throw new Error(`two-factor: ${status}`);
	return { secret, used, codes: body.backupCodes as string[], next: () => totpCode(secret, Date.now() + STEP_MS) };
}
