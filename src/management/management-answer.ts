import type { Static, TObject, TProperties } from "@sinclair/typebox";
import { isoOrNull } from "../base/iso-date.ts";
import { formatUsd, type NanoUsd } from "../money/nano-usd.ts";

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
	? `${First}${Capitalize<Camel<Rest>>}`
	: Name;
/** Field of the record for a field of the response: `capNanoUsd` for `cap_usd`, `createdAtMs` for `created_at`. */
type SourceOf<Name> = Name extends `${infer Of}_usd`
	? `${Camel<Of>}NanoUsd`
	: Name extends `${infer Of}_at`
		? `${Camel<Of>}AtMs`
		: Name extends string
			? Camel<Name>
			: never;
type Shown<P extends TProperties> = Static<TObject<P>>;

/** Builds a response from a record, as its schema says. `others` contains fields that differ in name or form. */
export function toAnswer<P extends TProperties, const Others extends Partial<Shown<P>>>(
	schema: TObject<P>,
	record: { readonly [Name in Exclude<keyof P, keyof Others | "object"> as SourceOf<Name>]: unknown },
	others: Others,
): Shown<P> {
	const values = record as Readonly<Record<string, unknown>>;
	const of = (name: string): unknown => {
		const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
		if (name.endsWith("_at")) return isoOrNull(values[`${camel}Ms`] as number | null);
		if (!name.endsWith("_usd")) return values[camel];
		const amount = values[camel.replace(/Usd$/, "NanoUsd")] as NanoUsd | null;
		return amount === null ? null : formatUsd(amount);
	};
	const fields = Object.entries(schema.properties).map(([name, { const: fixed }]) => [
		name,
		name in others ? others[name as keyof Others] : (fixed ?? of(name)),
	]);
	return Object.fromEntries(fields);
}
