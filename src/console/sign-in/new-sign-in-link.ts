import { newId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import { newToken } from "./token.ts";

export const SIGN_IN_LINK = "/api/sign-in-link/";

/** Page to open after the sign-in, by the word in the link's path. */
export const LINK_PAGES = { customer: "/overview", operator: "/operator" } as const;
export type LinkPage = keyof typeof LINK_PAGES;

/**
 * Returns the path of a new link for the person with this address; earlier links become invalid. The parent process
 * calls it, so this file must not import the sign-in library, which takes 41 MB.
 */
export async function createSignInLink(statements: Statements, link: { email: string; page: LinkPage; hours: number }) {
	const token = newToken();
	const hash = new Bun.CryptoHasher("sha256").update(token).digest("base64url");
	const value = JSON.stringify({ email: link.email });
	await statements`delete from verification where value = ${value}`;
	await statements`
		insert into verification (id, identifier, value, expires_at)
		values (${newId("ver")}, ${hash}, ${value}, clock_timestamp() + make_interval(hours => ${link.hours}::integer))`;
	return `${SIGN_IN_LINK}${link.page}/${token}`;
}
