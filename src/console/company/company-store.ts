import { resolveTxt } from "node:dns/promises";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { t } from "elysia";
import { newId } from "../../base/id.ts";
import { isMailAddress } from "../../base/mail-address.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { mapSchema } from "../../gateway/request-fields.ts";
import { type AuditNote, auditNote, auditNotesJson } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";
import { ROLES, type Role, roleHasRight } from "../members/roles.ts";
import { hashToken, newToken } from "../sign-in/token.ts";
import type { IdTokenClaims } from "./company-oidc.ts";

const DOMAIN = "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$";
const ROLE = t.UnionEnum(["admin", "developer", "billing", "viewer"] as const);
const text = (maxLength: number) => t.String({ minLength: 1, maxLength });

export const COMPANY_SETTINGS = t.Object({
	issuer: text(500),
	clientId: text(300),
	domain: t.String({ pattern: DOMAIN, maxLength: 253 }),
	emailTrusted: t.Boolean(),
	roleClaim: t.Nullable(text(200)),
	roleValues: mapSchema(ROLE),
	defaultRole: t.Nullable(ROLE),
	required: t.Boolean(),
});
export type CompanySettings = typeof COMPANY_SETTINGS.static;

/** Roles that a provider may grant. Only owners appoint owners, so `owner` is excluded. */
type CompanyRole = Exclude<Role, "owner">;

export interface Company extends CompanySettings {
	readonly accountId: string;
	readonly revision: string;
	readonly clientSecret: string;
	readonly domainToken: string;
	readonly verifiedAtMs: number | null;
}

/** DNS name of the TXT record by which a company proves its domain. */
export const proofRecordName = (domain: string): string => `_tollgate.${domain}`;
export const proofRecordText = (token: string): string => `tollgate-domain=${token}`;

export async function findCompany(
	statements: Statements,
	{ accountId = null, domain = null }: { accountId?: string | null; domain?: string | null },
): Promise<Company | undefined> {
	const [row] = await statements<object>`
		select *, domain_verified_at as verified_at from company_sign_in
		where account_id = ${accountId}::text or (domain = ${domain}::text and domain_verified_at is not null) limit 1`;
	return row && toView<Company>(row);
}

/**
 * Saves a company's sign-in settings. A changed issuer, client or domain ends all sessions of the company; a changed
 * domain must be proved again. `secret: null` keeps the stored secret. Fault `invalid_request` if no secret is stored.
 */
export async function saveCompany(
	statements: Statements,
	consoleSecret: string,
	accountId: string,
	settings: CompanySettings & { readonly secret: string | null },
	act?: AuditNote,
): Promise<void> {
	const before = await findCompany(statements, { accountId });
	// The stored client secret belongs to one issuer and client, so it is never sent to another issuer.
	const keeps = before?.issuer === settings.issuer && before.clientId === settings.clientId;
	if (settings.secret === null && !keeps)
		throw new ConsoleError("invalid_request", "Enter the client secret.", { param: "clientSecret" });
	const sealed =
		settings.secret === null
			? (before?.clientSecret ?? "")
			: await symmetricEncrypt({ key: consoleSecret, data: settings.secret });
	await statements`
		with saved as (insert into company_sign_in as c (account_id, revision, issuer, client_id, client_secret, domain, domain_token, email_trusted,
			role_claim, role_values, default_role, required)
		values (${accountId}, ${newId("cmp")}, ${settings.issuer}, ${settings.clientId}, ${sealed}, ${settings.domain}, ${newToken()},
			${settings.emailTrusted}, ${settings.roleClaim}, ${JSON.stringify(settings.roleValues)}::text::jsonb,
			${settings.defaultRole}, ${settings.required})
		on conflict (account_id) do update set
			revision = case when c.issuer = excluded.issuer and c.client_id = excluded.client_id and c.domain = excluded.domain
				then c.revision else excluded.revision end,
			issuer = excluded.issuer, client_id = excluded.client_id, client_secret = excluded.client_secret,
			domain_token = case when c.domain = excluded.domain then c.domain_token else excluded.domain_token end,
			domain_verified_at = case when c.domain = excluded.domain then c.domain_verified_at end,
			domain = excluded.domain, email_trusted = excluded.email_trusted, role_claim = excluded.role_claim,
			role_values = excluded.role_values, default_role = excluded.default_role, required = excluded.required
		returning account_id)
		select audit_note(${auditNotesJson(act)}::text::jsonb, account_id, account_id) from saved`;
}

export const decryptClientSecret = (company: Company, consoleSecret: string): Promise<string> =>
	symmetricDecrypt({ key: consoleSecret, data: company.clientSecret });

export async function removeCompany(statements: Statements, accountId: string, act?: AuditNote): Promise<void> {
	await statements`
		with gone as (delete from company_sign_in where account_id = ${accountId})
		select audit_note(${auditNotesJson(act)}::text::jsonb, ${accountId}, ${accountId})`;
}

/** Most domains that one call of `recheckDomains` looks up. */
const LOOK_UPS_MAX = 20;

/**
 * Repeats the DNS lookup of each domain whose proof was last seen a day ago. If DNS answers without the record on the
 * next day too, the company must prove the domain again. An unreachable DNS server changes nothing.
 */
export async function recheckDomains(statements: Statements, resolve: ResolveTxt = resolveTxt): Promise<void> {
	const due = await statements<{ id: string; domain: string; token: string; late: boolean }>`
		select account_id as id, domain, domain_token as token, domain_verified_at < clock_timestamp() - interval '2 days' as late
		from company_sign_in where domain_verified_at < clock_timestamp() - interval '1 day'
		order by random() limit ${LOOK_UPS_MAX}::integer`;
	for (const { id, domain, token, late } of due) {
		const isProved = await resolve(proofRecordName(domain)).then(
			(records) => records.some((parts) => parts.join("") === proofRecordText(token)),
			({ code }) => (code === "ENODATA" || code === "ENOTFOUND" ? false : undefined),
		);
		if (isProved === undefined || (!isProved && !late)) continue;
		await statements`
			update company_sign_in set domain_verified_at = case when ${isProved}::boolean then clock_timestamp() end
			where account_id = ${id} and domain_token = ${token}`;
	}
}

type ResolveTxt = (name: string) => Promise<readonly (readonly string[])[]>;

/**
 * Looks up the domain's TXT record. Faults `not_found`; `conflict` without it, or if another account has the domain.
 */
export async function verifyDomain(
	statements: Statements,
	accountId: string,
	resolve: ResolveTxt = resolveTxt,
	act?: AuditNote,
): Promise<void> {
	const company = await findCompany(statements, { accountId });
	if (company === undefined) throw new ConsoleError("not_found", "Single sign-on is not set up.");
	const name = proofRecordName(company.domain);
	const records = await resolve(name).catch(() => []);
	if (!records.some((parts) => parts.join("") === proofRecordText(company.domainToken)))
		throw new ConsoleError(
			"conflict",
			"No TXT record {name} with this value was found. DNS changes can take a few minutes.",
			{ values: { name } },
		);
	const [row] = await statements<{ taken: boolean }>`
		with other as (
			select 1 from company_sign_in where domain = ${company.domain} and domain_verified_at is not null and account_id <> ${accountId}
		), done as (
			update company_sign_in set domain_verified_at = coalesce(domain_verified_at, clock_timestamp())
			where account_id = ${accountId} and domain_token = ${company.domainToken} and not exists (select 1 from other)
			returning account_id
		)
		select exists (select 1 from other) as taken,
			(select audit_note(${auditNotesJson(act)}::text::jsonb, account_id, account_id) from done)`;
	if (row?.taken) throw new ConsoleError("conflict", "Another account already uses this domain.");
}

type Refusal = "other_domain" | "not_verified" | "operator" | "other_person" | "unproved" | "no_role";

/** Id of the company's provider in the library's tables. The issuer's hash separates a later issuer's identities. */
const providerId = ({ accountId, issuer }: Company): string => `company:${accountId}:${hashToken(issuer).slice(0, 24)}`;

/**
 * Finds or creates the person by the claim `sub`, not by address: an address may pass to another employee. Accepts only
 * addresses of the domain that the company proved. The session opens only this account.
 */
export async function findOrCreatePerson(
	statements: Statements,
	company: Company,
	claims: IdTokenClaims,
	makePerson: (person: { email: string; name: string }) => Promise<string>,
): Promise<{ readonly userId: string } | Refusal> {
	const email = typeof claims.email === "string" ? claims.email.trim().toLowerCase() : "";
	if (!isMailAddress(email) || email.slice(email.lastIndexOf("@") + 1) !== company.domain) return "other_domain";
	const isVerified = claims.email_verified === true || (claims.email_verified === undefined && company.emailTrusted);
	if (!isVerified) return "not_verified";

	const provider = providerId(company);
	const [known] = await statements<{ id: string; operator: boolean; verified: boolean; linked: string | null }>`
		select u.id, u.operator, u.email_verified as verified, a.account_id as linked
		from console_user u left join auth_account a on a.user_id = u.id and a.provider_id = ${provider}
		where a.account_id = ${claims.sub}
			or (u.email = ${email} and not exists (
				select 1 from auth_account o where o.provider_id = ${provider} and o.account_id = ${claims.sub}))
		limit 1`;
	if (known?.operator) return "operator";
	if (known !== undefined && known.linked !== null && known.linked !== claims.sub) return "other_person";
	// The address was never verified: its password may be a stranger's, who must not gain rights.
	if (known?.verified === false) return "unproved";

	const [member] =
		known === undefined
			? []
			: await statements<{
					role: Role;
				}>`select role from member where account_id = ${company.accountId} and user_id = ${known.id}`;
	const wanted = roleBy(company, claims);
	const isOwner = member?.role === "owner";
	if (wanted === null && (member === undefined || (company.roleClaim !== null && !isOwner))) return "no_role";

	const name = typeof claims.name === "string" ? claims.name : "";
	const userId = known?.id ?? (await makePerson({ email, name }));
	if (known?.linked == null) {
		// Inserts one identity per person and provider, even with concurrent sign-ins.
		const rows = await statements<{ account_id: string }>`
			with link as (
				insert into auth_account (id, account_id, provider_id, user_id)
				select ${newId("cred")}::text, ${claims.sub}::text, ${provider}::text, ${userId}::text
				where not exists (select 1 from auth_account where provider_id = ${provider} and (user_id = ${userId} or account_id = ${claims.sub}))
				on conflict do nothing returning account_id
			)
			select account_id from link union all
				select account_id from auth_account where provider_id = ${provider} and user_id = ${userId}`;
		if (!rows.some(({ account_id }) => account_id === claims.sub)) return "other_person";
	}
	if (member === undefined) {
		const act = auditNote({ actor: userId, action: "member.join", ip: null, detail: { issuer: company.issuer } });
		await statements`
			with joined as (
				insert into member (user_id, account_id, role) values (${userId}, ${company.accountId}, ${wanted}) on conflict do nothing
				returning user_id, account_id
			)
			select audit_note(${auditNotesJson(act)}::text::jsonb, user_id, account_id) from joined`;
		return { userId };
	}
	if (company.roleClaim === null || isOwner || wanted === null || wanted === member.role) return { userId };
	const act = auditNote({
		...{ actor: userId, action: "member.role", ip: null },
		detail: { role: wanted, issuer: company.issuer },
	});
	await statements`
		with changed as (
			update member set role = ${wanted} where user_id = ${userId} and account_id = ${company.accountId} and role <> 'owner' returning user_id
		), withdrawn as (
			delete from invitation i using changed c
			where i.account_id = ${company.accountId} and i.invited_by = c.user_id and not ${roleHasRight(wanted, "members.manage")}::boolean
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, user_id, ${company.accountId}) from changed`;
	return { userId };
}

/** The highest role that the claim's values grant, else the default. */
function roleBy(company: Company, claims: IdTokenClaims): CompanyRole | null {
	if (company.roleClaim === null) return company.defaultRole;
	const claim = Object.hasOwn(claims, company.roleClaim) ? claims[company.roleClaim] : undefined;
	const values = new Set(Array.isArray(claim) ? claim : [claim]);
	const given = Object.entries(company.roleValues).flatMap(([value, role]) => (values.has(value) ? [role] : []));
	const strongest = ROLES.find((role) => role !== "owner" && given.includes(role));
	return strongest === undefined || strongest === "owner" ? company.defaultRole : strongest;
}
