import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { newId } from "../../base/id.ts";
import { type SignIn, textField } from "./auth-request.ts";
import { signInError } from "./sign-in-error.ts";

export const resetIdentifier = (token: string) => `reset-password:${token}`;

export function readResetToken({ body, query }: { body?: unknown; query?: unknown }): string {
	return textField(body, "token") || textField(query, "token");
}

/**
 * Sets a password by a mailed link, in one transaction. The library would need five separate steps: an interruption
 * could use up the link and leave old sessions valid. `signInGuard` has checked the password before. The expiry is
 * compared with this machine's clock, by which the library sets it.
 */
export function passwordReset({ statements }: SignIn<"statements">) {
	return {
		id: "password-reset",
		endpoints: {
			resetPassword: createAuthEndpoint("/reset-password", { method: "POST" }, async (ctx) => {
				const identifier = resetIdentifier(readResetToken(ctx));
				// Looks the link up before the expensive password hash, so that an invalid link costs little.
				const known = await statements`
					select 1 from verification where identifier = ${identifier} and expires_at > to_timestamp(${Date.now()}::double precision / 1000.0)`;
				if (known.length === 0) throw usedUp();
				const password = await ctx.context.password.hash(textField(ctx.body, "newPassword"));
				const [row] = await statements<{ id: string | null }>`
					select password_reset(${identifier}, ${newId("cred")}, ${password}, ${Date.now()}::double precision) as id`;
				if (row === undefined || row.id === null) throw usedUp();
				return ctx.json({ status: true });
			}),
		},
	} satisfies BetterAuthPlugin;
}

const usedUp = () => signInError("INVALID_TOKEN", "This link has expired or was already used.");
