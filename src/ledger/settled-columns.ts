import type { SettledEvent } from "./event.ts";

/**
 * Settlements as `lease_settle` takes them: an array literal of Postgres for each field. Reading a record of JSON costs
 * Postgres three times as much.
 */
export type SettledColumns = Readonly<Record<keyof SettledEvent, string>>;

/** `json`: an array of SettledEvent. Throws if it is no JSON. */
export function settledColumns(json: string): SettledColumns {
	const events = JSON.parse(json) as readonly SettledEvent[];
	const column = (name: Exclude<keyof SettledEvent, "budgets">) => literalOf(events.map((event) => event[name]));
	return {
		id: column("id"),
		account: column("account"),
		key: column("key"),
		model: column("model"),
		card: column("card"),
		endpoint: column("endpoint"),
		streamed: column("streamed"),
		reserved: column("reserved"),
		batch: column("batch"),
		at: column("at"),
		charged: column("charged"),
		off: column("off"),
		basis: column("basis"),
		ending: column("ending"),
		status: column("status"),
		prompt: column("prompt"),
		cached: column("cached"),
		completion: column("completion"),
		reasoning: column("reasoning"),
		units: column("units"),
		replica: column("replica"),
		first: column("first"),
		ms: column("ms"),
		budgets: events.some(({ budgets }) => budgets !== undefined) ? literalOf(events.map(budgetsOf)) : "{}",
	};
}

/** Texts without anything special, the most, are quoted by what stands between them: no text is made for each. */
function literalOf(values: readonly Exclude<SettledEvent[keyof SettledEvent], readonly string[]>[]): string {
	const isPlain = values.length > 0 && values.every((value) => typeof value === "string" && !SPECIAL.test(value));
	return isPlain ? `{"${values.join('","')}"}` : `{${values.map(element).join(",")}}`;
}

/** Arrays of arrays are of one length in Postgres, so each is a literal of its own. */
const budgetsOf = ({ budgets }: SettledEvent) => (budgets === undefined ? null : literalOf(budgets));

/** What a text must not hold as it is: it ends the element, or changes what is behind it. */
const SPECIAL = /["\\]/;
const EACH_SPECIAL = /["\\]/g;

function element(value: Exclude<SettledEvent[keyof SettledEvent], readonly string[]>): string | number | boolean {
	// A field that a journal of a former version does not have.
	if (value === null || value === undefined) return "NULL";
	if (typeof value !== "string") return value;
	return `"${SPECIAL.test(value) ? value.replaceAll(EACH_SPECIAL, "\\$&") : value}"`;
}
