import { assert } from "../base/assert.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { CapPeriod, KnownPeriod } from "./cap-period.ts";

export type ProjectState = "active" | "archived";

/** The limits that keys and projects have in common. */
export interface LimitedEntry {
	name: string;
	/** Null: no cap. */
	capNanoUsd: NanoUsd | null;
	capPeriod: CapPeriod;
	period: KnownPeriod | null;
	/** Null: all models. */
	models: ReadonlySet<string> | null;
	/** Of a project: for all its keys together. */
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
}

/** The limits as the SQL functions `key_fields` and `project_fields` write them. */
export interface LimitedFields {
	name: string;
	capNanoUsd: number | null;
	capPeriod: CapPeriod;
	models: readonly string[] | null;
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
}

/** A project for admission: one object for all its keys, changed in place. */
export interface ProjectEntry extends LimitedEntry {
	readonly id: string;
	/** Keys of an archived project are refused. */
	state: ProjectState;
}

/** The project as the SQL function `project_fields` writes it: the payload of control entries of kind `project`. */
export interface ProjectFields extends LimitedFields {
	state: ProjectState;
}

export function createProjectEntry(id: string, fields: ProjectFields): ProjectEntry {
	return setProjectFields({ id, state: "archived", ...limitsOf(fields) }, fields);
}

export function setProjectFields(entry: ProjectEntry, fields: ProjectFields): ProjectEntry {
	assert(fields.state === "active" || fields.state === "archived", "a project is active or archived");
	return Object.assign(entry, { state: fields.state }, limitsOf(fields));
}

function limitsOf(fields: LimitedFields): LimitedEntry {
	return {
		name: fields.name,
		capNanoUsd: fields.capNanoUsd === null ? null : nanoUsdOfColumn(fields.capNanoUsd),
		capPeriod: fields.capPeriod,
		period: null,
		models: fields.models === null || fields.models.length === 0 ? null : new Set(fields.models),
		requestsPerMinute: fields.requestsPerMinute,
		concurrencyMax: fields.concurrencyMax,
	};
}

/** An account for admission: one object for all its keys, changed in place. */
export interface AccountEntry {
	readonly id: string;
	state: "active" | "suspended";
	/** A top-up of at least USD 100 was confirmed once. */
	toppedUp: boolean;
	signedIn: boolean;
	timeZone: string;
}

/** A key for admission. Changed in place, so that a request that is still being read sees its revocation. */
export interface KeyEntry extends LimitedEntry {
	readonly id: string;
	readonly accountId: string;
	readonly account: AccountEntry;
	/** Null: the account's own. A key that moves to another project gets another entry. */
	readonly project: ProjectEntry | null;
	state: "active" | "revoked";
	expiresAtMs: number | null;
	/** A read-only key, for its whole life. */
	readsOnly: boolean;
	/** False once the keyring evicted it: it receives no more changes, so it may not admit. */
	current: boolean;
}

/** The key as the SQL function `key_fields` writes it: the payload of control entries of kind `key`. */
export interface KeyFields extends LimitedFields {
	id: string;
	accountId: string;
	state: "active" | "revoked";
	expiresAtMs: number | null;
	readsOnly: boolean;
	projectId: string | null;
}

/** The account as the SQL function `account_fields` writes it: the payload of control entries of kind `account`. */
export interface AccountFields {
	state: "active" | "suspended";
	toppedUp: boolean;
	signedIn: boolean;
	timeZone: string;
}

export function createAccountEntry(id: string, fields: AccountFields): AccountEntry {
	const entry: AccountEntry = { id, state: "suspended", toppedUp: false, signedIn: false, timeZone: "UTC" };
	setAccountFields(entry, fields);
	return entry;
}

export function createKeyEntry(
	fields: KeyFields,
	account: AccountEntry,
	project: ProjectEntry | null = null,
): KeyEntry {
	const { id, accountId } = fields;
	assert(account.id === accountId, "a key comes with its own account");
	assert((project?.id ?? null) === fields.projectId, "a key comes with its own project");
	const common = { id, accountId, account, project, state: "revoked", expiresAtMs: null } as const;
	return setKeyFields({ ...common, ...limitsOf(fields), readsOnly: false, current: true }, fields);
}

export function setAccountFields(entry: AccountEntry, fields: AccountFields): void {
	assert(fields.state === "active" || fields.state === "suspended", "an account is active or suspended");
	entry.state = fields.state;
	entry.toppedUp = fields.toppedUp === true;
	entry.signedIn = fields.signedIn === true;
	entry.timeZone = fields.timeZone;
}

export function setKeyFields(entry: KeyEntry, fields: KeyFields): KeyEntry {
	const { state, expiresAtMs } = fields;
	assert(state === "active" || state === "revoked", "a key is active or revoked");
	const readsOnly = entry.readsOnly || fields.readsOnly;
	return Object.assign(entry, limitsOf(fields), { state, expiresAtMs, readsOnly });
}
