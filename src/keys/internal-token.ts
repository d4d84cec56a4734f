/**
 * Token for a request as a key whose secret is not stored. It names the key, the path and the expiry, signed with the
 * secret that both processes share. A stolen token is valid for a minute.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { KeyDigest } from "./secret.ts";

export interface InternalToken {
	/** Digest of the key in whose name the request is served. */
	readonly keyDigest: KeyDigest;
	readonly path: string;
}

const PREFIX = "tgi_";
/** Room for clocks that differ; a token is made for a request that is sent at once. */
const VALID_MS = 60_000;
const TOKEN_LENGTH_MAX = 1_024;

export function signInternalToken(secret: string, token: InternalToken, nowMs: number): string {
	const claims = JSON.stringify([token.keyDigest, token.path, nowMs + VALID_MS]);
	const text = Buffer.from(claims).toString("base64url");
	return `${PREFIX}${text}.${signatureOf(secret, text).toString("base64url")}`;
}

/** The digest of the key for a request to `path`; undefined if the token is not valid for it. */
export function readInternalToken(secret: string, token: string, path: string, nowMs: number): KeyDigest | undefined {
	if (!token.startsWith(PREFIX) || token.length > TOKEN_LENGTH_MAX) return undefined;
	const [text = "", signature = ""] = token.slice(PREFIX.length).split(".");
	const given = Buffer.from(signature, "base64url");
	const expected = signatureOf(secret, text);
	if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
	// Only text with our own signature is parsed.
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
