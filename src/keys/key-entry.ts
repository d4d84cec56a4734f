import { assert } from "../base/assert.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { CapPeriod, KnownPeriod } from "./cap-period.ts";
import type { ProjectEntry } from "./project-entry.ts";

/** An account for admission: one object for all its keys, changed in place. */
export interface AccountEntry {
	readonly id: string;
	state: "active" | "suspended";
	/** A top-up of at least USD 100 was confirmed once. */
	toppedUp: boolean;
	signedIn: boolean;
	/** The time zone in which periods of its caps begin. */
	timeZone: string;
}

/** A key for admission. Changed in place, so that a request that is still being read sees its revocation. */
export interface KeyEntry {
	readonly id: string;
	readonly accountId: string;
	readonly account: AccountEntry;
	/** Null: the account's own. A key that moves to another project gets another entry. */
	readonly project: ProjectEntry | null;
	name: string;
	state: "active" | "revoked";
	capNanoUsd: NanoUsd | null;
	capPeriod: CapPeriod;
	period: KnownPeriod | null;
	/** Null: all models. */
	models: ReadonlySet<string> | null;
	/** When it expires; null: never. */
	expiresAtMs: number | null;
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
	/** A read-only key, for its whole life. */
	readsOnly: boolean;
	/** False once the keyring evicted it: it receives no more changes, so it may not admit. */
	current: boolean;
}

/** The key as the SQL function `key_fields` writes it: the payload of control entries of kind `key`. */
export interface KeyFields {
	id: string;
	accountId: string;
	name: string;
	state: "active" | "revoked";
	capNanoUsd: number | null;
	capPeriod: CapPeriod;
	models: readonly string[] | null;
	expiresAtMs: number | null;
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
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
	assert(account.id === fields.accountId, "a key comes with its own account");
	assert((project?.id ?? null) === fields.projectId, "a key comes with its own project");
	const entry: KeyEntry = {
		id: fields.id,
		accountId: fields.accountId,
		account,
		project,
		name: "",
		state: "revoked",
		capNanoUsd: null,
		capPeriod: "lifetime",
		period: null,
		models: null,
		expiresAtMs: null,
		requestsPerMinute: null,
		concurrencyMax: null,
		readsOnly: false,
		current: true,
	};
	setKeyFields(entry, fields);
	return entry;
}

export function setAccountFields(entry: AccountEntry, fields: AccountFields): void {
	assert(fields.state === "active" || fields.state === "suspended", "an account is active or suspended");
	entry.state = fields.state;
	entry.toppedUp = fields.toppedUp === true;
	entry.signedIn = fields.signedIn === true;
	entry.timeZone = fields.timeZone;
}

export function setKeyFields(entry: KeyEntry, fields: KeyFields): void {
	assert(fields.state === "active" || fields.state === "revoked", "a key is active or revoked");
	entry.name = fields.name;
	entry.state = fields.state;
	entry.capNanoUsd = fields.capNanoUsd === null ? null : nanoUsdOfColumn(fields.capNanoUsd);
	entry.capPeriod = fields.capPeriod;
	entry.period = null;
	entry.models = fields.models === null || fields.models.length === 0 ? null : new Set(fields.models);
	entry.expiresAtMs = fields.expiresAtMs;
	entry.requestsPerMinute = fields.requestsPerMinute;
	entry.concurrencyMax = fields.concurrencyMax;
	entry.readsOnly ||= fields.readsOnly;
}
