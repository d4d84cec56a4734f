import type { Terms } from "../../catalog/brand.ts";
import type { Statements } from "../../db/statements.ts";
import { ConsoleError } from "../console-error.ts";

/** What somebody has still to agree to; null for nothing. */
export async function termsDue(statements: Statements, userId: string, terms: Terms | null): Promise<Terms | null> {
	if (terms === null) return null;
	const rows = await statements`
		select 1 from terms_acceptance where user_id = ${userId} and version = ${terms.version}`;
	return rows.length > 0 ? null : terms;
}

/** Fault conflict if other terms hold by now: then they are to be read first. */
export async function acceptTerms(
	statements: Statements,
	userId: string,
	{ terms, version }: { terms: Terms | null; version: string },
): Promise<void> {
	if (terms?.version !== version)
		throw new ConsoleError("conflict", "The terms have changed since: please read them anew.", { param: "version" });
	await statements`
		insert into terms_acceptance (user_id, version) values (${userId}, ${version}) on conflict do nothing`;
}
