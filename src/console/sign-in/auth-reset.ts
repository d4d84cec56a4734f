import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { newId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import { signInError } from "./sign-in-error.ts";

/** What stands behind the token of a mail that leads to a new password. */
export const resetIdentifier = (token: string) => `reset-password:${token}`;

/** As the library finds it. */
export function resetTokenOf({ body, query }: { body?: unknown; query?: unknown }): string {
	return textOf(body, "token") || textOf(query, "token");
}

/**
 * Setting a new password by a mail's link, in place of the library's own, which does it in five steps: whoever died or was cut
 * off between two of them left the former sessions and passkeys beside the new password, and a link that was used up. The
 * guard has looked at the password by then. A link's time is over by the machine's clock, by which the library has dated it.
 */
export function passwordReset({ statements }: { readonly statements: Statements }) {
	return {
		id: "password-reset",
		endpoints: {
			/** Body: `token`, `newPassword`. */
			resetPassword: createAuthEndpoint("/reset-password", { method: "POST" }, async (ctx) => {
				const identifier = resetIdentifier(resetTokenOf(ctx));
				// Before the password is hashed, which is dear: strangers have no link.
				const known = await statements`
					select 1 from verification where identifier = ${identifier} and expires_at > to_timestamp(${Date.now()}::double precision / 1000.0)`;
				if (known.length === 0) throw usedUp();
				const password = await ctx.context.password.hash(textOf(ctx.body, "newPassword"));
				const [row] = await statements<{ id: string | null }>`
					select password_reset(${identifier}, ${newId("cred")}, ${password}, ${Date.now()}::double precision) as id`;
				if (row === undefined || row.id === null) throw usedUp();
				return ctx.json({ status: true });
			}),
		},
	} satisfies BetterAuthPlugin;
}

function textOf(record: unknown, name: string): string {
	const value = typeof record === "object" && record !== null ? (record as Record<string, unknown>)[name] : undefined;
	return typeof value === "string" && !value.includes("\0") ? value : "";
}

const usedUp = () => signInError("INVALID_TOKEN", "This link was used already, or is too old.");
