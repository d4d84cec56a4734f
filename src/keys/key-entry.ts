import { assert } from "../base/assert.ts";
import { type AccountPrices, type Agreement, createAccountPrices } from "../catalog/agreements.ts";
import type { RequestLimits } from "../limits/key-limits.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { CapPeriod, CurrentPeriod } from "./cap-period.ts";

export type ProjectState = "active" | "archived";

/** Limits that both keys and projects have. */
export interface LimitedEntry extends RequestLimits {
	name: string;
	/** Most that may be spent; null: no cap. */
	capNanoUsd: NanoUsd | null;
	capPeriod: CapPeriod;
	period: CurrentPeriod | null;
	/** Models that may be used; null: all. */
	models: ReadonlySet<string> | null;
}

/** Limits in the form that the SQL functions `key_fields` and `project_fields` return. */
export interface LimitedFields extends RequestLimits {
	name: string;
	capNanoUsd: number | null;
	capPeriod: CapPeriod;
	models: readonly string[] | null;
}

/** A project in memory. All its keys share this object, which is changed in place. */
export interface ProjectEntry extends LimitedEntry {
	readonly id: string;
	/** Requests with keys of an archived project are refused. */
	state: ProjectState;
}

/** A project as the SQL function `project_fields` returns it, and as control entries of kind `project` contain it. */
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

const limitsOf = (fields: LimitedFields): LimitedEntry => ({
	name: fields.name,
	capNanoUsd: fields.capNanoUsd === null ? null : nanoUsdOfColumn(fields.capNanoUsd),
	capPeriod: fields.capPeriod,
	period: null,
	models: fields.models === null || fields.models.length === 0 ? null : new Set(fields.models),
	requestsPerMinute: fields.requestsPerMinute,
	concurrencyMax: fields.concurrencyMax,
	tokensPerMinute: fields.tokensPerMinute,
});

/** An account in memory. All its keys share this object, which is changed in place. */
export interface AccountEntry {
	readonly id: string;
	state: "active" | "suspended";
	toppedUp: boolean;
	signedIn: boolean;
	timeZone: string;
	tags: readonly string[];
	/** Null: the limit that `tollgate.yaml` sets for the account's tags. */
	tokensPerMinute: number | null;
	/** Undefined: list prices. */
	prices: AccountPrices | undefined;
}

/** A key in memory, changed in place, so that a request whose body is still being read notices a revocation. */
export interface KeyEntry extends LimitedEntry {
	readonly id: string;
	readonly accountId: string;
	readonly account: AccountEntry;
	/** Project of the key; null: none. A key that moves to another project gets a new KeyEntry. */
	readonly project: ProjectEntry | null;
	state: "active" | "revoked";
	expiresAtMs: number | null;
	/** True if the key may only read and never spend. */
	readsOnly: boolean;
	/** False after the key was evicted from memory: it then gets no more changes, so it may not be used. */
	current: boolean;
}

/** A key as the SQL function `key_fields` returns it, and as control entries of kind `key` contain it. */
export interface KeyFields extends LimitedFields {
	id: string;
	accountId: string;
	state: "active" | "revoked";
	expiresAtMs: number | null;
	readsOnly: boolean;
	projectId: string | null;
}

/** An account as the SQL function `account_fields` returns it, and as control entries of kind `account` contain it. */
export interface AccountFields {
	state: "active" | "suspended";
	toppedUp: boolean;
	signedIn: boolean;
	timeZone: string;
	tags: readonly string[];
	tokensPerMinute: number | null;
	agreements: readonly Agreement[];
}

export function createAccountEntry(id: string, fields: AccountFields): AccountEntry {
	const unset = {
		toppedUp: false,
		signedIn: false,
		timeZone: "UTC",
		tags: [],
		tokensPerMinute: null,
		prices: undefined,
	};
	const entry: AccountEntry = { id, state: "suspended", ...unset };
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
	entry.tags = fields.tags;
	entry.tokensPerMinute = fields.tokensPerMinute;
	entry.prices = fields.agreements.length === 0 ? undefined : createAccountPrices(fields.agreements);
}

export function setKeyFields(entry: KeyEntry, fields: KeyFields): KeyEntry {
	const { state, expiresAtMs } = fields;
	assert(state === "active" || state === "revoked", "a key is active or revoked");
	const readsOnly = entry.readsOnly || fields.readsOnly;
	return Object.assign(entry, limitsOf(fields), { state, expiresAtMs, readsOnly });
}
