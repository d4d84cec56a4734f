import {
	type AccountFields,
	createAccountEntry,
	createKeyEntry,
	type KeyEntry,
	type KeyFields,
} from "../../src/keys/key-entry.ts";

/** Fields of a key of `acc_1` that has all rights and no limit. */
export const plainKeyFields = (id: string, changes: Partial<KeyFields> = {}): KeyFields => ({
	id,
	accountId: "acc_1",
	name: id,
	state: "active",
	capNanoUsd: null,
	capPeriod: "lifetime",
	models: null,
	expiresAtMs: null,
	requestsPerMinute: null,
	concurrencyMax: null,
	tokensPerMinute: null,
	readsOnly: false,
	projectId: null,
	...changes,
});

export const plainAccountFields: AccountFields = {
	state: "active",
	toppedUp: true,
	signedIn: true,
	timeZone: "UTC",
	tags: [],
	tokensPerMinute: null,
	agreements: [],
};

export function plainKey(key: Partial<KeyFields> = {}, account: Partial<AccountFields> = {}): KeyEntry {
	const fields = plainKeyFields("key_1", key);
	return createKeyEntry(fields, createAccountEntry(fields.accountId, { ...plainAccountFields, ...account }));
}
