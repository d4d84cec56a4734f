/** Building blocks of schemas. */
import { type TProperties, type TSchema, Type } from "@sinclair/typebox";

/** An object with exactly these fields. */
export const exact = <T extends TProperties>(properties: T) => Type.Object(properties, { additionalProperties: false });
/** Several fields with one schema. */
export const each = <T extends TSchema, Names extends string>(schema: T, ...names: readonly Names[]) =>
	Object.fromEntries(names.map((name) => [name, schema])) as { [Name in Names]: T };
export const oneOf = <Values extends readonly string[]>(...values: Values) =>
	Type.Unsafe<Values[number]>(Type.Union(values.map((value) => Type.Literal(value))));
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const Text = Type.String();
export const Count = Type.Integer({ minimum: 0 });
export const Cost = Type.Number({
	minimum: 0,
	description: "US dollars, as charged. GET /v1/usage/{id} has the exact amount.",
});
export const Basis = Type.Union([Type.Literal("exact"), Type.Literal("estimated")], {
	description: "Whose count it is: the model server's own, or an estimate where it gave none.",
});
export const Usd = Type.String({ pattern: "^-?\\d+\\.\\d{2,9}$", description: "US dollars as a decimal string." });
export const Seconds = Type.Integer({ description: "Unix time." });
