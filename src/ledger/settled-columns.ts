import type { SettledEvent } from "./event.ts";
import { USAGE_FIELD_NAMES, usageField } from "./usage-fields.ts";

/** Settlements in their order, in whatever form. */
export type Settlements = Iterable<SettledEvent> & { readonly length: number };

/**
 * As `lease_settle` takes them: an array literal of Postgres for each field, of which one with a single element stands for all
 * settlements. Reading JSON costs Postgres three times as much.
 */
export type SettledLiterals = Readonly<Record<keyof SettledEvent, string>>;

type Columns = { readonly [Name in keyof SettledEvent]-?: SettledEvent[Name][] };

const decoder = new TextDecoder();

/**
 * Settlements as an array for each field, the only thing that is kept of them on their way to Postgres: numbers, and texts
 * that most of them share. So young collections find nothing to walk, and a batch is made into text a column at a time.
 */
export class SettledColumns {
	readonly #columns: Columns;
	/** JSON of what is sent of each column, made when it is first asked for. */
	readonly #texts = new Map<keyof SettledEvent, string>();

	constructor(columns: Columns = emptyColumns()) {
		this.#columns = columns;
	}

	static of(settlements: Settlements): SettledColumns {
		if (settlements instanceof SettledColumns) return settlements;
		const columns = new SettledColumns();
		for (const event of settlements) columns.add(event);
		return columns;
	}

	/** Of what `bytes` gave. */
	static read(bytes: Uint8Array): SettledColumns {
		const sent = JSON.parse(decoder.decode(bytes)) as Columns;
		const settlements = sent.id.length;
		const columns = emptyColumns() as Record<keyof SettledEvent, unknown[]>;
		for (const name of NAMES) {
			const values = sent[name].length === settlements ? sent[name] : new Array(settlements).fill(sent[name][0]);
			columns[name] = usageField(name).optional ? values.map((value) => value ?? undefined) : values;
		}
		return new SettledColumns(columns as unknown as Columns);
	}

	get length(): number {
		return this.#columns.id.length;
	}

	add(event: SettledEvent): void {
		const columns = this.#columns;
		// To empty one that is empty makes another.
		if (this.#texts.size > 0) this.#texts.clear();
		append(columns, event);
	}

	/** The settlement at this place. */
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

	/** What `literals` and `bytes` take most of their time for, before they are asked for. */
	prepare(): void {
		for (const name of NAMES) this.#json(name);
	}

	literals(): SettledLiterals {
		const literals: Partial<Record<keyof SettledEvent, string>> = {};
		for (const name of NAMES) literals[name] = literalOf(this.#sent(name) as Value[], this.#json(name));
		literals.budgets = arrayLiteral((this.#sent("budgets") as Columns["budgets"]).map(budgetsOf));
		return literals as SettledLiterals;
	}

	/** For `read`, outside of the heap. */
	bytes(): Uint8Array {
		let length = 1;
		for (const [name, head] of HEADS) length += head.length + Buffer.byteLength(this.#json(name));
		const bytes = Buffer.allocUnsafeSlow(length);
		let at = 0;
		for (const [name, head] of HEADS) {
			at += bytes.write(head, at);
			at += bytes.write(this.#json(name), at);
		}
		bytes.write("}", at);
		return bytes;
	}

	clear(): void {
		this.#texts.clear();
		for (const name of NAMES) this.#columns[name].length = 0;
	}

	/** Most columns say the same of all requests of a tenth of a second: one of them is a third of the text and of the work. */
	#sent(name: keyof SettledEvent): readonly unknown[] {
		const column: readonly unknown[] = this.#columns[name];
		if (name === "id") return column;
		const [first] = column;
		return column.every((value) => value === first) ? column.slice(0, 1) : column;
	}

	#json(name: keyof SettledEvent): string {
		let text = this.#texts.get(name);
		if (text === undefined) {
			text = JSON.stringify(this.#sent(name));
			this.#texts.set(name, text);
		}
		return text;
	}
}

type Value = Exclude<SettledEvent[keyof SettledEvent], readonly string[]>;

const NAMES = USAGE_FIELD_NAMES;

const emptyColumns = () => Object.fromEntries(NAMES.map((name) => [name, []])) as unknown as Columns;

/** Compiled from the table of fields: a loop over their names costs 7 to 10 times the processor time, on every request. */
const append = new Function(
	"columns",
	"event",
	NAMES.map((name) => `columns.${name}.push(event.${name});`).join(""),
) as (columns: Columns, event: SettledEvent) => void;

/** What stands before each column in a text of all. */
const HEADS = NAMES.map((name, index) => [name, `${index === 0 ? "{" : ","}"${name}":`] as const);

/**
 * An array of JSON is one of Postgres in other brackets as long as no text of it needs a backslash, and the runtime writes
 * it all at once. A field that a journal of a former version does not have is null.
 */
const literalOf = (values: readonly Value[], json: string): string =>
	json.includes("\\") ? `{${values.map(element).join(",")}}` : `{${json.slice(1, -1)}}`;

const arrayLiteral = (values: readonly Value[]): string => literalOf(values, JSON.stringify(values));

/** Arrays of arrays are of one length in Postgres, so each is a literal of its own. */
const budgetsOf = (budgets: readonly string[] | undefined) => (budgets === undefined ? null : arrayLiteral(budgets));

/** What a text must not hold as it is: it ends the element, or changes what is behind it. */
const SPECIAL = /["\\]/g;

const element = (value: Value): string =>
	typeof value === "string" ? `"${value.replaceAll(SPECIAL, "\\$&")}"` : JSON.stringify(value ?? null);
