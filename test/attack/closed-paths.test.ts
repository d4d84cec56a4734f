import { expect, test } from "bun:test";
import { PASSWORD, PERSON_ENV, signedUp } from "../console/person.ts";
import { openRaw, parseRaw } from "../support/raw-http.ts";
import { withConsole } from "./product.ts";

/** Features of the sign-in library that this service disables, requested with every spelling of their paths. */

const product = await withConsole(PERSON_ENV);

const CLOSED: readonly [string, string, object][] = [
	["GET", "list-sessions", {}],
	["POST", "revoke-sessions", {}],
	["POST", "revoke-other-sessions", {}],
	["POST", "change-email", { newEmail: "eve@example.com" }],
	["POST", "delete-user", { password: PASSWORD }],
	["POST", "send-verification-email", { email: "eve@example.com" }],
	["POST", "link-social", { provider: "github" }],
	["POST", "unlink-account", { providerId: "credential" }],
	["POST", "update-session", { authenticatedAt: new Date().toISOString() }],
	["POST", "verify-password", { password: PASSWORD }],
	["POST", "set-password", { newPassword: "a password of a thief" }],
	["POST", "two-factor/get-totp-uri", { password: PASSWORD }],
	["POST", "two-factor/send-otp", {}],
	["POST", "two-factor/verify-otp", { code: "000000" }],
	["POST", "two-factor/view-backup-codes", { userId: "x" }],
	["POST", "two-factor/generate-totp", { secret: "x" }],
	["POST", "sign-in/magic-link", { email: "eve@example.com" }],
	["GET", "magic-link/verify?token=x", {}],
	["GET", "verify-email?token=x", {}],
];
const spellings = (path: string) => [
	path,
	`${path}/`,
	`/${path}`,
	path.replace("/", "//"),
	path.replace("-", "%2D"),
	path.replace("/", "%2F"),
	path.toUpperCase(),
	`./${path}`,
	`x/../${path}`,
	`%2E/${path}`,
	path.replace(/^(.)/, (first) => `%${first.charCodeAt(0).toString(16)}`),
	`${path};x`,
	`${path}%00`,
	path.replace(/(?=\?|$)/, "%20"),
];

test("no encoding of a disabled sign-in path reaches the disabled feature", async () => {
	const person = await signedUp(product);
	const cookie = [...person.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
	const opened: unknown[] = [];
	for (const [method, path, body] of CLOSED)
		for (const spelling of spellings(path)) {
			const sent = method === "GET" ? "" : JSON.stringify(body);
			const client = await openRaw(
				product.url,
				[
					`${method} /api/auth/${spelling} HTTP/1.1`,
					`Host: ${new URL(product.url).host}`,
					`Origin: ${product.url}`,
					`Cookie: ${cookie}`,
					`X-Forwarded-For: 10.9.${opened.length}.1`,
					"Content-Type: application/json",
					`Content-Length: ${sent.length}`,
					"Connection: close",
					"",
					sent,
				].join("\r\n"),
			);
			const { status } = parseRaw(await client.ended());
			if (status < 400 || status === 401 || status >= 500) opened.push([method, spelling, status]);
		}
	expect(opened).toEqual([]);
	expect((await person.get("/api/console/me")).status).toBe(200);
}, 60_000);
