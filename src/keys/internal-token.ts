/**
 * Token for a request with a key whose secret no process has, such as a playground chat. Contains the key's digest, the
 * path and the expiry, signed with a secret that console and gateways share. Valid for a minute.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { KeyDigest } from "./secret.ts";

export interface InternalToken {
	/** Digest of the key with which the request is made. */
	readonly keyDigest: KeyDigest;
	readonly path: string;
}

const PREFIX = "tgi_";
/** Milliseconds of validity. Tokens are used at once, so this only tolerates differences between clocks. */
const VALID_MS = 60_000;
const TOKEN_LENGTH_MAX = 1_024;

export function signInternalToken(secret: string, token: InternalToken, nowMs: number): string {
	const claims = JSON.stringify([token.keyDigest, token.path, nowMs + VALID_MS]);
	const text = Buffer.from(claims).toString("base64url");
	return `${PREFIX}${text}.${signatureOf(secret, text).toString("base64url")}`;
}

/** Returns the key's digest; undefined if the token is invalid, expired or for another path. */
export function readInternalToken(secret: string, token: string, path: string, nowMs: number): KeyDigest | undefined {
	if (!token.startsWith(PREFIX) || token.length > TOKEN_LENGTH_MAX) return undefined;
	const [text = "", signature = ""] = token.slice(PREFIX.length).split(".");
	const given = Buffer.from(signature, "base64url");
	const expected = signatureOf(secret, text);
	if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
	// Parsed only after the signature was verified.
	const [keyDigest, signedPath, untilMs] = JSON.parse(Buffer.from(text, "base64url").toString()) as [
		KeyDigest,
		string,
		number,
	];
	return signedPath === path && nowMs < untilMs && untilMs <= nowMs + 2 * VALID_MS ? keyDigest : undefined;
}

function signatureOf(secret: string, text: string): Buffer {
	return createHmac("sha256", secret).update(`internal token ${text}`).digest();
}
