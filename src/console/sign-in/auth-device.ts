import type { GenericEndpointContext } from "better-auth";

/** A browser that somebody signed in with before, as a signed cookie of ours says. */
export interface Device {
	readonly id: string;
	/** Who signed in with it, the latest first. */
	readonly userIds: readonly string[];
}

const COOKIE = "device";
/** What the signature is for: the library signs values, not names of cookies. */
const MARK = "device";
/** Browsers keep no cookie for longer. */
const KEPT_S = 400 * 24 * 3600;
const PEOPLE_MAX = 5;

/** Null for a browser that nobody signed in with. */
export async function readDevice(ctx: GenericEndpointContext): Promise<Device | null> {
	const value = await ctx.getSignedCookie(ctx.context.createAuthCookie(COOKIE).name, ctx.context.secret);
	if (typeof value !== "string") return null;
	const [mark, id = "", ...userIds] = value.split("~");
	return mark === MARK && id !== "" ? { id, userIds } : null;
}

/** To be called when somebody has signed in, or has shown by a mailed link who he is. */
export async function rememberDevice(ctx: GenericEndpointContext, userId: string): Promise<void> {
	const before = await readDevice(ctx);
	const userIds = [userId, ...(before?.userIds ?? []).filter((other) => other !== userId)].slice(0, PEOPLE_MAX);
	const cookie = ctx.context.createAuthCookie(COOKIE, { maxAge: KEPT_S });
	const value = [MARK, before?.id ?? crypto.randomUUID(), ...userIds].join("~");
	await ctx.setSignedCookie(cookie.name, value, ctx.context.secret, cookie.attributes);
}
