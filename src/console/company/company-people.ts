import { newId } from "../../base/id.ts";
import { isMailAddress } from "../../base/mail-address.ts";
import type { Statements } from "../../db/statements.ts";
import { auditNote, auditNotesJson } from "../../ops/audit.ts";
import { can, ROLES, type Role } from "../members/roles.ts";
import { hashToken } from "../sign-in/token.ts";
import type { Claims } from "./company-oidc.ts";
import type { Company, CompanyRole } from "./company-store.ts";

type Refusal = "other_domain" | "not_verified" | "operator" | "other_person" | "unproved" | "no_role";

/** Id of the company's provider in the library's tables. The issuer's hash separates a later issuer's identities. */
function providerId({ accountId, issuer }: Company): string {
	return `company:${accountId}:${hashToken(issuer).slice(0, 24)}`;
}

/**
 * Finds or creates the person by the claim `sub`, not by address: an address may pass to another employee. Accepts only
 * addresses of the domain that the company proved. The session opens only this account.
 */
export async function findOrCreatePerson(
	statements: Statements,
	company: Company,
	claims: Claims,
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
			where i.account_id = ${company.accountId} and i.invited_by = c.user_id and not ${can(wanted, "members.manage")}::boolean
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, user_id, ${company.accountId}) from changed`;
	return { userId };
}

/** The highest role that the claim's values grant, else the default. */
function roleBy(company: Company, claims: Claims): CompanyRole | null {
	if (company.roleClaim === null) return company.defaultRole;
	const claim = Object.hasOwn(claims, company.roleClaim) ? claims[company.roleClaim] : undefined;
	const values = new Set(Array.isArray(claim) ? claim : [claim]);
	const given = Object.entries(company.roleValues).flatMap(([value, role]) => (values.has(value) ? [role] : []));
	const strongest = ROLES.find((role) => role !== "owner" && given.includes(role));
	return strongest === undefined || strongest === "owner" ? company.defaultRole : strongest;
}
