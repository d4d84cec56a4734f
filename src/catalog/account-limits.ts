import type { RequestLimits } from "../limits/key-limits.ts";
import type { YamlField, YamlReader } from "./yaml-reader.ts";

/** A word by which operators group accounts. It must not look like an account's id. */
export const TAG = /^(?!acc_)[a-z0-9][a-z0-9_-]{0,39}$/;
/** Each instance's share of a limit is a 32-bit integer, so a limit must be below 2^31. */
export const TOKENS_PER_MINUTE_MAX = 1_000_000_000;
const ENTRIES_MAX = 100;

/** Limits of accounts with the tag; without a tag, of all accounts that match no earlier entry. */
export interface AccountLimits extends RequestLimits {
	readonly tag: string | null;
}

export function readAccountLimits(reader: YamlReader, field: YamlField | undefined): readonly AccountLimits[] {
	const bounds = { min: 1, max: TOKENS_PER_MINUTE_MAX, integer: true };
	return (reader.list(field, ENTRIES_MAX) ?? []).flatMap((item) => {
		const map = reader.map(item, ["tag", "requests_per_minute", "concurrency", "tokens_per_minute"]);
		if (map === undefined) return [];
		const limit = (name: string) => reader.number(map.get(name), bounds) ?? null;
		return Object.freeze({
			tag: reader.text(map.get("tag"), TAG, "must be 1 to 40 of the characters a-z 0-9 _ -") ?? null,
			requestsPerMinute: limit("requests_per_minute"),
			concurrencyMax: limit("concurrency"),
			tokensPerMinute: limit("tokens_per_minute"),
		});
	});
}

/** Limits of the first entry that matches the account, but with the account's token limit. Null: no limits. */
export function limitsOfAccount(
	entries: readonly AccountLimits[],
	{ tags, tokensPerMinute }: { readonly tags: readonly string[]; readonly tokensPerMinute: number | null },
): RequestLimits | null {
	let found: RequestLimits | null = null;
	for (const entry of entries) {
		if (entry.tag !== null && !tags.includes(entry.tag)) continue;
		found = entry;
		break;
	}
	if (tokensPerMinute === null) return found;
	return { requestsPerMinute: null, concurrencyMax: null, ...found, tokensPerMinute };
}
