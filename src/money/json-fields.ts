import { isoOrNull } from "../base/iso-date.ts";
import { formatUsd, type NanoUsd } from "./nano-usd.ts";

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
	? `${First}${Capitalize<Camel<Rest>>}`
	: Name;
/** Member of a record for a field of JSON: `capNanoUsd` for `cap_usd`, `createdAtMs` for `created_at`. */
export type SourceOf<Name> = Name extends `${infer Of}_usd`
	? `${Camel<Of>}NanoUsd`
	: Name extends `${infer Of}_at`
		? `${Camel<Of>}AtMs`
		: Name extends string
			? Camel<Name>
			: never;
type Word<Names extends string> = Names extends `${infer First} ${infer Rest}` ? First | Word<Rest> : Names;

/** Value of a field: an amount in decimal dollars, a time in ISO 8601, another member as it is. */
export function jsonField(record: object, name: string): unknown {
	const values = record as Readonly<Record<string, unknown>>;
	const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
	if (name.endsWith("_at")) return isoOrNull(values[`${camel}Ms`] as number | null);
	if (!name.endsWith("_usd")) return values[camel];
	const amount = values[camel.replace(/Usd$/, "NanoUsd")] as NanoUsd | null;
	return amount === null ? null : formatUsd(amount);
}

/** Builds a record of JSON fields from `record`. `names` are the fields' names, separated by blanks. */
export const jsonFields = <const Names extends string>(
	names: Names,
	record: { readonly [Name in Word<Names> as SourceOf<Name>]: unknown },
) => Object.fromEntries(names.split(" ").map((name) => [name, jsonField(record, name)]));
