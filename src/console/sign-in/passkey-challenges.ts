import type { GenericEndpointContext } from "better-auth";
import { expireCookie } from "better-auth/cookies";
import type { Statements } from "../../db/statements.ts";
import { signInError } from "./sign-in-error.ts";

/** What a passkey signs, to show that it is there now. */
export type Challenges = ReturnType<typeof createChallenges>;

type Kind = "register" | "sign-in";

/** A browser's own half of a challenge. */
const COOKIE = "passkey";
const VALID_MINUTES = 5;

export function createChallenges(statements: Statements) {
	return {
		async keep(ctx: GenericEndpointContext, kind: Kind, challenge: string): Promise<void> {
			const browser = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
			await statements`
				insert into verification (id, identifier, value, expires_at) values (${crypto.randomUUID()}, ${idOf(kind, browser)},
					${challenge}, clock_timestamp() + make_interval(mins => ${VALID_MINUTES}::integer))`;
			const cookie = ctx.context.createAuthCookie(COOKIE, { maxAge: VALID_MINUTES * 60 });
			await ctx.setSignedCookie(cookie.name, browser, ctx.context.secret, cookie.attributes);
		},

		/** Good once, in the browser that asked for it, for what it asked for. */
		async take(ctx: GenericEndpointContext, kind: Kind): Promise<string> {
			const cookie = ctx.context.createAuthCookie(COOKIE);
			const browser = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
			if (typeof browser !== "string") throw notGood();
			expireCookie(ctx, cookie);
			const [row] = await statements<{ value: string }>`
				delete from verification where identifier = ${idOf(kind, browser)} and expires_at > clock_timestamp() returning value`;
			if (row === undefined) throw notGood();
			return row.value;
		},
	};
}

const idOf = (kind: Kind, browser: string) =>
	`passkey ${kind}:${new Bun.CryptoHasher("sha256").update(browser).digest("hex")}`;
export const notGood = () => signInError("PASSKEY_REFUSED", "This passkey was not accepted. Try again.");
