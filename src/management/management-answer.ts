import type { Static, TObject, TProperties } from "@sinclair/typebox";
import { jsonField, type SourceOf } from "../money/json-fields.ts";

type Shown<P extends TProperties> = Static<TObject<P>>;

/** Builds a response from a record, as its schema says. `others` contains fields that differ in name or form. */
export function toAnswer<P extends TProperties, const Others extends Partial<Shown<P>>>(
	schema: TObject<P>,
	record: { readonly [Name in Exclude<keyof P, keyof Others | "object"> as SourceOf<Name>]: unknown },
	others: Others,
): Shown<P> {
	const fields = Object.entries(schema.properties).map(([name, { const: fixed }]) => [
		name,
		name in others ? others[name as keyof Others] : (fixed ?? jsonField(record, name)),
	]);
	return Object.fromEntries(fields);
}
