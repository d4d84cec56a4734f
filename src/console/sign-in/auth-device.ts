import { timingSafeEqual } from "node:crypto";
import type { GenericEndpointContext } from "better-auth";

/** A browser in which the person signed in before, recognized by a signed cookie. */
export interface KnownBrowser {
	readonly id: string;
	readonly userIds: readonly string[];
}

const COOKIE = "device";
/** Part of the signed value, so that no other signed cookie is accepted: the signature omits the cookie's name. */
const MARK = "device";
/** Browsers keep cookies for 400 days at most. */
const KEPT_S = 400 * 24 * 3600;
const PEOPLE_MAX = 5;

export async function readDevice(ctx: GenericEndpointContext): Promise<KnownBrowser | null> {
	const value = await ctx.getSignedCookie(ctx.context.createAuthCookie(COOKIE).name, ctx.context.secret);
	return typeof value === "string" ? deviceIn(value) : null;
}

/** Like `readDevice`, but for a request that the sign-in library has not parsed yet. */
export function deviceOf(
	{ headers }: Request,
	{ createAuthCookie, secret }: Pick<GenericEndpointContext["context"], "createAuthCookie" | "secret">,
): KnownBrowser | null {
	const signed = new Bun.CookieMap(headers.get("cookie") ?? "").get(createAuthCookie(COOKIE).name) ?? "";
	const at = signed.lastIndexOf(".");
	const value = signed.slice(0, Math.max(0, at));
	const signature = new Bun.CryptoHasher("sha256", secret).update(value).digest();
	const given = Buffer.from(signed.slice(at + 1), "base64");
	return given.length === signature.length && timingSafeEqual(given, signature) ? deviceIn(value) : null;
}

function deviceIn(value: string): KnownBrowser | null {
	const [mark, id = "", ...userIds] = value.split("~");
	return mark === MARK && id !== "" ? { id, userIds } : null;
}

/** Marks the browser as known. Call it after a sign-in, or after a mailed link has proved the address. */
export async function rememberDevice(ctx: GenericEndpointContext, userId: string): Promise<void> {
	const before = await readDevice(ctx);
	const userIds = [userId, ...(before?.userIds ?? []).filter((other) => other !== userId)].slice(0, PEOPLE_MAX);
	const cookie = ctx.context.createAuthCookie(COOKIE, { maxAge: KEPT_S });
	const value = [MARK, before?.id ?? crypto.randomUUID(), ...userIds].join("~");
	await ctx.setSignedCookie(cookie.name, value, ctx.context.secret, cookie.attributes);
}
