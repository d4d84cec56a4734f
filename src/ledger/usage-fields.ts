interface UsageField {
	readonly column: string;
	/** Type of the column. In events a `bigint` is an amount in nano-dollars, a `timestamptz` Unix milliseconds. */
	readonly type: "uuid" | "text" | "text[]" | "boolean" | "integer" | "bigint" | "real" | "timestamptz";
	/** When the value becomes known: at the request's admission or at its end. */
	readonly known: "admission" | "end";
	readonly nullable?: true;
	/** True if events without a value lack the property; in other fields it is null. */
	readonly optional?: true;
	/** True for a number of tokens or other units that the request used; 0 if it used none. */
	readonly count?: true;
	/** True if archived rows and their seal contain the field. Adding one needs a new format of seals. */
	readonly archived?: true;
}

/**
 * Fields of a settled request, in the order of `lease_settle`'s arguments and of archived rows. Events, journal
 * records, batches, SQL arguments, the table `usage_event`, the archive and the request log are derived from this
 * table. `src/recipes.md` says how to add a field.
 */
export const USAGE_FIELDS = {
	id: { column: "request_id", type: "uuid", known: "admission", archived: true },
	account: { column: "account_id", type: "text", known: "admission", archived: true },
	key: { column: "key_id", type: "text", known: "admission", archived: true },
	model: { column: "model", type: "text", known: "admission", archived: true },
	/** Rate card that prices the request, even if the rates change before the request ends. */
	card: { column: "rate_card_id", type: "text", known: "admission", archived: true },
	endpoint: { column: "endpoint", type: "text", known: "admission", archived: true },
	streamed: { column: "streamed", type: "boolean", known: "admission", archived: true },
	reserved: { column: "reserved_nano_usd", type: "bigint", known: "admission", archived: true },
	charged: { column: "charged_nano_usd", type: "bigint", known: "end", archived: true },
	/** Part of the actual cost that no credit covered and the operator bears. */
	off: { column: "written_off_nano_usd", type: "bigint", known: "end", archived: true },
	/** `exact`: counted by the model server; `estimated`: by the gateway; `recovered`: from a crashed journal. */
	basis: { column: "basis", type: "text", known: "end", archived: true },
	ending: { column: "ending", type: "text", known: "end", archived: true },
	/** HTTP status that the client received or would have received. */
	status: { column: "status", type: "integer", known: "end", archived: true },
	/** Prompt tokens, including cached ones. */
	promptTokens: { column: "prompt_tokens", type: "integer", known: "end", count: true, archived: true },
	cachedTokens: { column: "cached_tokens", type: "integer", known: "end", count: true, archived: true },
	/** Completion tokens, including reasoning tokens. */
	completionTokens: { column: "completion_tokens", type: "integer", known: "end", count: true, archived: true },
	reasoningTokens: { column: "reasoning_tokens", type: "integer", known: "end", count: true, archived: true },
	/** Number of audio seconds, images or searches, depending on the endpoint. */
	units: { column: "units", type: "integer", known: "end", count: true, archived: true },
	/** Alias of the replica that served the request, never its address. */
	replica: { column: "replica", type: "text", known: "end", nullable: true, archived: true },
	/** Managed batch to which the request belongs. */
	batch: { column: "batch_id", type: "text", known: "admission", optional: true, archived: true },
	at: { column: "admitted_at", type: "timestamptz", known: "admission", archived: true },
	/** Milliseconds from admission to the first token; null if there was none. */
	first: { column: "first_token_ms", type: "real", known: "end", nullable: true, archived: true },
	/** Milliseconds from admission to the end. */
	ms: { column: "duration_ms", type: "real", known: "end", archived: true },
	/** Budgets of the request other than account and key: its project's, and periods of renewing caps. */
	budgets: { column: "budgets", type: "text[]", known: "admission", optional: true },
} as const satisfies Record<string, UsageField>;

export type UsageFields = typeof USAGE_FIELDS;
export type UsageFieldName = keyof UsageFields;

export const USAGE_FIELD_NAMES = Object.keys(USAGE_FIELDS) as readonly UsageFieldName[];

export const usageField = (name: UsageFieldName): UsageField => USAGE_FIELDS[name];

export type CountName = {
	[Name in UsageFieldName]: UsageFields[Name] extends { count: true } ? Name : never;
}[UsageFieldName];

export const COUNT_NAMES = USAGE_FIELD_NAMES.filter((name) => usageField(name).count) as readonly CountName[];

export type CountColumns = { readonly [Name in CountName as UsageFields[Name]["column"]]: number };

export function readCounts(row: CountColumns): Readonly<Record<CountName, number>> {
	const columns: Readonly<Record<string, number>> = row;
	return Object.fromEntries(COUNT_NAMES.map((name) => [name, columns[usageField(name).column]])) as Record<
		CountName,
		number
	>;
}
