import type { Endpoint } from "../catalog/request-fields.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { type CountName, USAGE_FIELD_NAMES, type UsageFieldName, type UsageFields } from "./usage-fields.ts";

export type UsageBasis = "exact" | "estimated" | "recovered";
export type RequestEnding =
	| "finished"
	| "upstream_failed"
	| "upstream_died"
	| "upstream_silent"
	| "client_left"
	| "shutdown"
	| "crashed";

interface ValueOfType {
	readonly uuid: string;
	readonly text: string;
	readonly "text[]": readonly string[];
	readonly boolean: boolean;
	readonly integer: number;
	readonly bigint: NanoUsd;
	readonly real: number;
	readonly timestamptz: number;
}

interface ClosedLists {
	readonly endpoint: Endpoint;
	readonly basis: UsageBasis;
	readonly ending: RequestEnding;
}

type ValueOf<Name extends UsageFieldName> =
	| (Name extends keyof ClosedLists ? ClosedLists[Name] : ValueOfType[UsageFields[Name]["type"]])
	| (UsageFields[Name] extends { nullable: true } ? null : never);

type Values<Names extends UsageFieldName> = {
	readonly [Name in keyof UsageFields as Name extends Names ? Name : never]: ValueOf<Name>;
};

type Named<Shape> = { [Name in UsageFieldName]: UsageFields[Name] extends Shape ? Name : never }[UsageFieldName];
type OptionalName = Named<{ optional: true }>;
type OptionalValues = { readonly [Name in OptionalName]?: ValueOf<Name> | undefined };
type AdmittedName = Exclude<Named<{ known: "admission" }>, OptionalName>;

export interface AdmittedEvent extends Values<AdmittedName>, OptionalValues {}

/** How a request ended and what it cost, as stored in `usage_event`. */
export interface SettledEvent extends AdmittedEvent, Values<Named<{ known: "end" }>> {}

/** Counts of tokens and other units that a request used. */
export type UsageCounts = Values<CountName>;

/** Settlements in order, as objects or as columns. */
export type Settlements = Iterable<SettledEvent> & { readonly length: number };

/**
 * Arguments of `lease_settle`: one Postgres array literal per field. A field whose values are all equal is sent as an
 * array of one element. JSON would cost Postgres three times as much.
 */
type SettledLiterals = Readonly<Record<keyof SettledEvent, string>>;

type Columns = { readonly [Name in keyof SettledEvent]-?: SettledEvent[Name][] };

/**
 * Settlements as one array per field. The garbage collector then visits no object per settlement, and a batch is
 * serialized column by column.
 */
export class SettledColumns {
	readonly #columns: Columns;
	constructor(columns: Columns = emptyColumns()) {
		this.#columns = columns;
	}

	static of(settlements: Settlements): SettledColumns {
		if (settlements instanceof SettledColumns) return settlements;
		const columns = new SettledColumns();
		for (const event of settlements) columns.add(event);
		return columns;
	}

	get length(): number {
		return this.#columns.id.length;
	}

	ids(): readonly string[] {
		return this.#columns.id;
	}

	add(event: SettledEvent): void {
		append(this.#columns, event);
	}

	at(place: number): SettledEvent {
		return Object.fromEntries(NAMES.map((name) => [name, this.#columns[name][place]])) as unknown as SettledEvent;
	}

	*[Symbol.iterator](): Generator<SettledEvent> {
		for (let place = 0; place < this.length; place++) yield this.at(place);
	}

	where(chosen: (place: number) => boolean): SettledColumns {
		const columns = new SettledColumns();
		for (let place = 0; place < this.length; place++) if (chosen(place)) columns.add(this.at(place));
		return columns;
	}

	literals(): SettledLiterals {
		const literals: Partial<Record<keyof SettledEvent, string>> = {};
		for (const name of NAMES) literals[name] = arrayLiteral(this.#sent(name) as Value[]);
		literals.budgets = arrayLiteral((this.#sent("budgets") as Columns["budgets"]).map(budgetsOf));
		return literals as SettledLiterals;
	}

	/** Values to send: one element if all are equal, as most columns are. That saves two thirds of text and work. */
	#sent(name: keyof SettledEvent): readonly unknown[] {
		const column: readonly unknown[] = this.#columns[name];
		if (name === "id") return column;
		const [first] = column;
		return column.every((value) => value === first) ? column.slice(0, 1) : column;
	}
}

type Value = Exclude<SettledEvent[keyof SettledEvent], readonly string[]>;

const NAMES = USAGE_FIELD_NAMES;

const emptyColumns = () => Object.fromEntries(NAMES.map((name) => [name, []])) as unknown as Columns;

/** Compiled from the table of fields, because a loop over the names takes 7 to 10 times as long per request. */
const append = new Function(
	"columns",
	"event",
	NAMES.map((name) => `columns.${name}.push(event.${name});`).join(""),
) as (columns: Columns, event: SettledEvent) => void;

/**
 * Turns a JSON array into a Postgres array by replacing the brackets, because the runtime writes JSON in one call;
 * texts with a backslash are escaped one by one. A field that a journal of the previous version lacks becomes null.
 */
function arrayLiteral(values: readonly Value[]): string {
	const json = JSON.stringify(values);
	return json.includes("\\") ? `{${values.map(element).join(",")}}` : `{${json.slice(1, -1)}}`;
}

/** Joins each inner array to one text, because Postgres requires nested arrays of equal length. */
const budgetsOf = (budgets: readonly string[] | undefined) => (budgets === undefined ? null : arrayLiteral(budgets));

/** Characters that need a backslash in a Postgres array literal. */
const SPECIAL = /["\\]/g;

const element = (value: Value): string =>
	typeof value === "string" ? `"${value.replaceAll(SPECIAL, "\\$&")}"` : JSON.stringify(value ?? null);
