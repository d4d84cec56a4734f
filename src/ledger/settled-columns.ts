import type { SettledEvent } from "./event.ts";

/**
 * Settlements as `lease_settle` takes them: an array literal of Postgres for each field. Reading a record of JSON costs
 * Postgres three times as much.
 */
export type SettledColumns = Readonly<Record<keyof SettledEvent, string>>;

export function settledColumns(events: readonly SettledEvent[]): SettledColumns {
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

type Value = Exclude<SettledEvent[keyof SettledEvent], readonly string[]>;

/**
 * An array of JSON is one of Postgres in other brackets as long as no text of it needs a backslash, and the runtime writes
 * it all at once. A field that a journal of a former version does not have is null.
 */
function literalOf(values: readonly Value[]): string {
	const json = JSON.stringify(values);
	return json.includes("\\") ? `{${values.map(element).join(",")}}` : `{${json.slice(1, -1)}}`;
}

/** Arrays of arrays are of one length in Postgres, so each is a literal of its own. */
const budgetsOf = ({ budgets }: SettledEvent) => (budgets === undefined ? null : literalOf(budgets));

/** What a text must not hold as it is: it ends the element, or changes what is behind it. */
const SPECIAL = /["\\]/g;

const element = (value: Value): string =>
	typeof value === "string" ? `"${value.replaceAll(SPECIAL, "\\$&")}"` : JSON.stringify(value ?? null);
