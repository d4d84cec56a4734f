import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { isMailAddress } from "../base/mail-address.ts";
import { TAG } from "../catalog/account-limits.ts";
import type { Agreement } from "../catalog/agreements.ts";
import { type AppendedEntry, toEntry } from "../cluster/control-log.ts";
import { onlyRow } from "../db/outage.ts";
import { type ListPage, type PageQuery, pageBounds, toPageById } from "../db/page.ts";
import { type Statements, throwFault, toView } from "../db/statements.ts";
import { type AuditNote, auditNotesJson } from "../ops/audit.ts";
import { isTimeZone } from "./cap-period.ts";
import { checkKeySettings, isLabel } from "./key-settings.ts";

export interface AccountRecord {
	readonly id: string;
	readonly email: string;
	readonly name: string;
	readonly state: "active" | "suspended";
	readonly signedInAtMs: number | null;
	readonly toppedUp: boolean;
	/** Time zone in which the periods of the account's caps start. */
	readonly timeZone: string;
	readonly tags: readonly string[];
	/** Null: the limit that `tollgate.yaml` sets for the account's tags. */
	readonly tokensPerMinute: number | null;
	/** Price agreements in force or planned. */
	readonly agreements: readonly Agreement[];
	readonly createdAtMs: number;
	/** Entity tag of all changeable fields; it changes with each of them. */
	readonly etag: string;
}

export interface AccountChanges {
	readonly name?: string;
	readonly state?: AccountRecord["state"];
	readonly timeZone?: string;
	/** Replaces all existing tags. */
	readonly tags?: readonly string[];
	readonly tokensPerMinute?: number | null;
}

export interface NewAccount {
	readonly email: string;
	/** By default the part of the e-mail address before the @. */
	readonly name?: string;
	/** True if an operator vouches for the owner, so that requests are allowed before the first sign-in. */
	readonly vouched: boolean;
}

const NAME_CHARS_MAX = 200;
const TAGS_MAX = 20;

/** Creates an account, once per `id`. Faults: `invalid_request`; `conflict` if the e-mail address is in use. */
export async function createAccount(
	statements: Statements,
	account: NewAccount,
	id: string = newId("acc"),
	act?: AuditNote,
): Promise<{ id: string }> {
	const { email, name } = checkNewAccount(account);
	const [row] = await statements<{ id: string }>`
		with a as (
			insert into account (id, email, name, signed_in_at)
			values (${id}, ${email}, ${name}, case when ${account.vouched}::boolean then clock_timestamp() end)
			on conflict do nothing returning id
		), b as (
			insert into budget (id, kind, account_id, limit_nano_usd) select id, 'account', id, 0 from a returning id
		)
		select a.id, audit_note(${auditNotesJson(act)}::text::jsonb, a.id, a.id) from a join b using (id)`;
	if (row !== undefined) return { id: row.id };
	const [made] = await statements<{ id: string }>`select id from account where id = ${id} and email = ${email}`;
	if (made !== undefined) return made;
	throw new Fault("conflict", "An account with this email address already exists.", { param: "email" });
}

/** Returns the fields in the form in which they are stored. Fault `invalid_request`. */
export function checkNewAccount(account: Pick<NewAccount, "email" | "name">): { email: string; name: string } {
	const email = account.email.trim().toLowerCase();
	// Without a valid address no person could sign in or get mail, so it would have no owner.
	if (!isMailAddress(email)) throw new Fault("invalid_request", "Enter a valid email address.", { param: "email" });
	const name = account.name ?? cut(email.slice(0, email.indexOf("@")));
	checkName(name);
	return { email, name };
}

/** Shortens a text to the length of a name, without splitting a surrogate pair. */
const cut = (text: string): string => text.slice(0, NAME_CHARS_MAX).replace(/\p{Cs}$/u, "");

function checkName(name: string): void {
	if (!isLabel(name, NAME_CHARS_MAX))
		throw new Fault("invalid_request", "A name must be one line of 1 to {count} characters.", {
			values: { count: NAME_CHARS_MAX },
			param: "name",
		});
}

/** Finds an account by id or e-mail address; null if there is none. */
export async function findAccount(statements: Statements, idOrEmail: string): Promise<AccountRecord | null> {
	const [row] = await statements<object>`
		select a.*, account_etag(a) as etag from account a
		where id = ${idOrEmail} or email = ${idOrEmail.toLowerCase()} limit 1`;
	return row === undefined ? null : toView<AccountRecord>(row);
}

/** Like `findAccount`, but throws Fault `not_found`. */
export async function getAccount(statements: Statements, idOrEmail: string): Promise<AccountRecord> {
	const account = await findAccount(statements, idOrEmail);
	if (account === null) throw new Fault("not_found", "There is no account {id}.", { values: { id: idOrEmail } });
	return account;
}

export async function listAccounts(statements: Statements, page: PageQuery = {}): Promise<ListPage<AccountRecord>> {
	const { shown, asked, after } = pageBounds(page);
	const rows = await statements<object>`
		select a.*, account_etag(a) as etag from account a
		where ${after}::text is null or id < ${after}::text order by id desc limit ${asked}`;
	return toPageById(rows.map(toView<AccountRecord>), shown);
}

/** Suspends an account: once instances have applied the entry, only requests in flight continue. Fault `not_found`. */
export const suspendAccount = settingState("suspended");
/** Ends a suspension. Fault `not_found`. */
export const unsuspendAccount = settingState("active");

function settingState(state: AccountRecord["state"]) {
	return async (statements: Statements, id: string, act?: AuditNote): Promise<{ id: string } & AppendedEntry> => {
		const { entry } = await updateAccount(statements, id, { state }, null, act === undefined ? [] : [act]);
		assert(entry !== null, "a state that is set has an entry");
		return { id, ...entry };
	};
}

/**
 * Changes fields. With `match` only if the current `etag` is one of them. Returns the control entry; null if instances
 * need none. Faults: `not_found`, `invalid_request`, `precondition_failed`.
 */
export async function updateAccount(
	statements: Statements,
	id: string,
	{ name, state, timeZone, tags, tokensPerMinute }: AccountChanges,
	match: readonly string[] | null = null,
	acts: readonly AuditNote[] = [],
): Promise<{ id: string; entry: AppendedEntry | null }> {
	if (name !== undefined) checkName(name);
	checkKeySettings({ tokensPerMinute: tokensPerMinute ?? null });
	if (tags !== undefined && (tags.length > TAGS_MAX || !tags.every((tag) => TAG.test(tag))))
		throw new Fault(
			"invalid_request",
			"An account has at most {count} tags, each of 1 to 40 of the characters a-z 0-9 _ -, not beginning with acc_.",
			{ param: "tags", values: { count: TAGS_MAX } },
		);
	if (timeZone !== undefined && !isTimeZone(timeZone))
		throw new Fault("invalid_request", "A time zone must be a name such as UTC or Europe/Berlin.", {
			param: "time_zone",
		});
	const rows = await statements<{ seq: string | null; at_micros: string }>`
		select account_update(${id}, ${JSON.stringify({ name, state, timeZone, tags, tokensPerMinute })}::text::jsonb, ${match === null ? null : JSON.stringify(match)}::text::jsonb) as seq, control_at() as at_micros,
			audit_note(${auditNotesJson(...acts)}::text::jsonb, ${id}, ${id})`.catch(throwFault);
	const { seq, at_micros } = onlyRow(rows);
	return { id, entry: seq === null ? null : toEntry({ seq, at_micros }) };
}

/** Records the first sign-in. Returns the control entry's number; null if recorded before or the account is unknown. */
export async function markSignedIn(statements: Statements, id: string): Promise<number | null> {
	const [row] = await statements<{ seq: string }>`
		with a as (
			update account set signed_in_at = clock_timestamp() where id = ${id} and signed_in_at is null
			returning id, account_fields(account) as fields
		)
		select control_append('account', a.id, a.fields) as seq from a`;
	return row === undefined ? null : Number(row.seq);
}
