import { Elysia, t } from "elysia";
import { isLanguage, LANGUAGES, type Language } from "../base/language.ts";
import type { Terms } from "../catalog/brand.ts";
import type { Statements } from "../db/statements.ts";
import { updateAccount } from "../keys/account-admin.ts";
import { ACCOUNT_QUERY, type Parts } from "./console-deps.ts";
import { ConsoleError } from "./console-error.ts";
import { isPersonName, NAME_RULE } from "./sign-in/person-name.ts";

const CODES = Object.keys(LANGUAGES).filter(isLanguage) as [Language, ...Language[]];

export function settingsRoutes(parts: Parts<"statements" | "brand" | "sessions">) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-settings" })
		.guard(ACCOUNT_QUERY)
		.get("/me", ({ request }) => meOf(parts, request))
		.post(
			"/terms",
			async ({ request, body }) => {
				const { userId } = sessions.viewer(request);
				const { version } = body;
				// Refuses any version but the current one: the person must have read the new terms.
				if (parts.brand.shown.terms?.version !== version)
					throw new ConsoleError("conflict", "The terms have changed. Please read and accept the new version.", {
						param: "version",
					});
				await statements`
					insert into terms_acceptance (user_id, version) values (${userId}, ${version}) on conflict do nothing`;
				return { accepted: version };
			},
			{ body: t.Object({ version: t.String({ maxLength: 40 }) }) },
		)
		.put(
			"/language",
			async ({ request, body }) => {
				const { userId } = sessions.viewer(request);
				await statements`update console_user set language = ${body.language} where id = ${userId}`;
				return { language: body.language };
			},
			{ body: t.Object({ language: t.UnionEnum(CODES) }) },
		)
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.patch(
			"/account",
			async ({ member: { accountId, noted }, body }) => {
				const { name, timeZone } = body;
				if (name !== undefined && !isPersonName(name))
					throw new ConsoleError("invalid_request", NAME_RULE, { param: "name" });
				const changes = { ...(name === undefined ? {} : { name }), ...(timeZone === undefined ? {} : { timeZone }) };
				await updateAccount(statements, accountId, changes, null, [
					...(name === undefined ? [] : [noted("account.rename", { name })]),
					...(timeZone === undefined ? [] : [noted("account.time_zone", { timeZone })]),
				]);
				return { id: accountId };
			},
			{
				body: t.Object({
					name: t.Optional(t.String({ minLength: 1, maxLength: 200 })),
					timeZone: t.Optional(t.String({ minLength: 1, maxLength: 100 })),
				}),
			},
		);
}

async function meOf({ statements, brand, sessions }: Parts<"statements" | "brand" | "sessions">, request: Request) {
	const { userId, sessionId, name, email, emailVerified, twoFactorEnabled, operator, company, language, memberships } =
		sessions.viewer(request);
	const accounts = memberships.map(({ accountId, ...rest }) => ({ id: accountId, ...rest }));
	const { membership } = sessions.of(request);
	const viewed = membership?.viewing && { ...membership, id: membership.accountId };
	return {
		user: { id: userId, name, email, emailVerified, twoFactorEnabled, operator, company, language },
		session: { id: sessionId },
		termsDue: await termsDue(statements, userId, brand.shown.terms),
		accounts,
		account: viewed ?? accounts.find(({ id }) => id === membership?.accountId) ?? null,
	};
}

async function termsDue(statements: Statements, userId: string, terms: Terms | null): Promise<Terms | null> {
	if (terms === null) return null;
	const rows = await statements`
		select 1 from terms_acceptance where user_id = ${userId} and version = ${terms.version}`;
	return rows.length > 0 ? null : terms;
}
