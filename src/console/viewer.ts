import { Fault } from "../base/fault.ts";
import type { Language } from "../base/language.ts";
import { type Statements, toView } from "../db/statements.ts";
import { createAccount, findAccount, markSignedIn } from "../keys/account-admin.ts";
import type { Role } from "./members/roles.ts";
import { isPersonName } from "./sign-in/person-name.ts";

export interface Membership {
	readonly accountId: string;
	readonly name: string;
	readonly email: string;
	readonly role: Role;
	readonly state: "active" | "suspended";
	/** True if the account requires its company's single sign-on and this session began otherwise. */
	readonly closed: boolean;
	readonly timeZone: string;
	/** Set for an operator's read-only view of an account of which the operator is not a member. */
	readonly viewing?: true;
}

export interface Viewer {
	readonly userId: string;
	readonly sessionId: string;
	/** Milliseconds since this session entered the password or gave an equivalent proof. */
	readonly authenticatedAgoMs: number;
	readonly name: string;
	readonly email: string;
	readonly emailVerified: boolean;
	readonly twoFactorEnabled: boolean;
	readonly operator: boolean;
	readonly language: Language | null;
	readonly company: boolean;
	readonly memberships: readonly Membership[];
}

/**
 * Returns the accounts of a person with a verified address. The first visit creates an account, or gives the person an
 * ownerless one that an operator created for this address.
 */
export async function readMemberships(
	statements: Statements,
	user: { readonly id: string; readonly name: string; readonly email: string; readonly emailVerified: boolean },
	revision: string | null,
): Promise<readonly Membership[]> {
	let rows = await read(statements, user.id, revision);
	if (rows.length === 0 && user.emailVerified && revision === null) {
		await settle(statements, user);
		rows = await read(statements, user.id, revision);
	}
	for (const row of rows) if (!row.signedIn) await markSignedIn(statements, row.accountId);
	return rows.map(({ signedIn: _, ...membership }) => membership);
}

/**
 * Reads the memberships. A session from a company's sign-in passes the `revision` of the company's settings and gets
 * only that company's account, or nothing if the settings have changed since. Other sessions pass null.
 */
async function read(statements: Statements, userId: string, revision: string | null) {
	const rows = await statements<object>`
		select m.account_id, a.name, a.email, m.role, a.state, a.time_zone, a.signed_in_at is not null as signed_in,
			coalesce(c.required and c.domain_verified_at is not null and m.role <> 'owner' and c.revision is distinct from ${revision}::text, false)
				as closed
		from member m join account a on a.id = m.account_id left join company_sign_in c on c.account_id = m.account_id
		where m.user_id = ${userId} and (${revision}::text is null or c.revision = ${revision}::text) order by m.joined_at, m.account_id`;
	return rows.map(toView<Membership & { readonly signedIn: boolean }>);
}

async function settle(statements: Statements, user: { id: string; name: string; email: string }): Promise<void> {
	const named = isPersonName(user.name) ? { name: user.name } : {};
	try {
		await createAccount(statements, { email: user.email, vouched: false, ...named });
	} catch (error) {
		if (!(error instanceof Fault) || error.code !== "conflict") throw error;
	}
	const account = await findAccount(statements, user.email);
	if (account === null) return;
	await statements`
		insert into member (user_id, account_id, role)
		select ${user.id}::text, ${account.id}::text, 'owner'
		where not exists (select 1 from member m where m.account_id = ${account.id})
		on conflict do nothing`;
}

/** Returns the account for an operator who opened a view of it within the last hour; null otherwise. */
export async function viewedAccount(
	statements: Statements,
	operatorId: string,
	id: string,
): Promise<Membership | null> {
	const [row] = await statements<object>`
		select a.id as account_id, a.name, a.email, a.state, a.time_zone from account a
		where a.id = ${id} and audit_viewing(${operatorId}, a.id)`;
	if (row === undefined) return null;
	const account = toView<Omit<Membership, "role" | "closed" | "viewing">>(row);
	return { ...account, role: "viewer", closed: false, viewing: true };
}
