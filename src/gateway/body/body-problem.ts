import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type ValueError, type ValueErrorIterator, ValueErrorType } from "@sinclair/typebox/errors";

/** The first validation error of a body, traced to its innermost cause, with the path of the field: `tools[0].type`. */
export function bodyProblem(schema: TSchema, body: unknown): { param: string | null; message: string } {
	const wrong = wrongPart(schema, body, "");
	const found = checkOf(wrong.schema).Errors(wrong.value).First();
	const [error, ...others] = found ? placesOf(found) : [];
	const param = error ? paramOf(wrong.path + error.path) : null;
	if (error === undefined || param === null)
		return { param: null, message: "The request is malformed. Compare it with /openapi.json." };
	return { param, message: `\`${param}\` ${problemText(error, others)}.` };
}

interface Part {
	readonly schema: TSchema;
	readonly value: unknown;
	readonly path: string;
}

/** Finds the innermost part that fails. Uses compiled checks: TypeBox's error search takes fifty times as long. */
function wrongPart(schema: TSchema, value: unknown, path: string): Part {
	const here = { schema, value, path };
	const kind = Array.isArray(value) ? "array" : "object";
	const forms = unionVariants(schema).filter(({ type }) => type === kind);
	const [form, another] = forms;
	if (form === undefined || another !== undefined || typeof value !== "object" || value === null) return here;
	if (Array.isArray(value)) {
		if (value.length < (form.minItems ?? 0) || value.length > (form.maxItems ?? value.length)) return here;
		const item = checkOf(form.items as TSchema);
		const at = value.findIndex((one) => !item.Check(one));
		return at < 0 ? here : wrongPart(form.items, value[at], `${path}/${at}`);
	}
	const members = value as Record<string, unknown>;
	if (form.required?.some((name: string) => members[name] === undefined) === true) return here;
	for (const [name, property] of Object.entries<TSchema>(form.properties ?? {}))
		if (members[name] !== undefined && !checkOf(property).Check(members[name]))
			return wrongPart(property, members[name], `${path}/${name}`);
	return here;
}

/** The variants of a union; for any other schema the schema itself. */
export function unionVariants(schema: TSchema): readonly TSchema[] {
	return (schema.anyOf as readonly TSchema[] | undefined)?.flatMap(unionVariants) ?? [schema];
}

const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** Compiles a schema's check when the schema first fails, and caches it. */
function checkOf(schema: TSchema): TypeCheck<TSchema> {
	const known = checks.get(schema) ?? TypeCompiler.Compile(schema);
	checks.set(schema, known);
	return known;
}

/**
 * For a union, reports the error of the variant that matches deepest ("an array with a bad element", not "neither an
 * array nor null"). Prefers a variant whose type name matches, then a variant whose value is only too long or too
 * large. If all variants fail at the same path, the errors of all are returned.
 */
function placesOf(error: ValueError): ValueError[] {
	if (error.type !== ValueErrorType.Union) return [error];
	const ways = error.errors.flatMap((variant) => {
		const first = wrongNameOrFirst(variant);
		return first ? placesOf(first) : [];
	});
	const inside = ways.filter(({ path, type }) => path !== error.path || !KINDS.has(type));
	const named = inside.filter(({ type }) => type !== ValueErrorType.Literal);
	const limits = named.filter(({ type }) => !KINDS.has(type) && type !== ValueErrorType.ObjectRequiredProperty);
	const meant = [limits, named, inside].find((some) => some.length > 0) ?? [];
	const deepest = meant.reduce<ValueError | undefined>(
		(best, way) => (best === undefined || way.path.length > best.path.length ? way : best),
		undefined,
	);
	if (deepest === undefined) return ways;
	return named.length > 0 ? [deepest] : meant.filter(({ path }) => path === deepest.path);
}

/** The first error of a variant, or its wrong `type` name, which shows that the client meant another variant. */
function wrongNameOrFirst(variant: ValueErrorIterator): ValueError | undefined {
	let first: ValueError | undefined;
	for (const error of variant) {
		if (error.type === ValueErrorType.Literal) return error;
		first ??= error;
		// TypeBox reports missing members before a wrong type name, so the search continues after them.
		if (error.type !== ValueErrorType.ObjectRequiredProperty) break;
	}
	return first;
}

const KINDS: ReadonlyMap<ValueErrorType, string> = new Map([
	[ValueErrorType.String, "a string"],
	[ValueErrorType.Integer, "an integer"],
	[ValueErrorType.Number, "a number"],
	[ValueErrorType.Boolean, "true or false"],
	[ValueErrorType.Array, "an array"],
	[ValueErrorType.Object, "an object"],
	[ValueErrorType.Null, ""],
	[ValueErrorType.Literal, ""],
]);

/** Says what is expected. Never repeats the value, which may be a prompt. */
function problemText(error: ValueError, others: readonly ValueError[]): string {
	if (error.type === ValueErrorType.ObjectRequiredProperty) return "is missing";
	const kinds = [error, ...others].map(kindOf).filter((kind) => kind !== "");
	if (kinds.length === 0) return `is not allowed: ${error.message.charAt(0).toLowerCase()}${error.message.slice(1)}`;
	const last = kinds.pop();
	return `must be ${kinds.length === 0 ? "" : `${kinds.join(", ")} or `}${last}`;
}

function kindOf({ type, schema }: ValueError): string {
	return type === ValueErrorType.Literal ? JSON.stringify(schema.const) : (KINDS.get(type) ?? "");
}

/** Converts a JSON pointer to OpenAI's notation: `/messages/0/role` → `messages[0].role`. Shortens long names. */
function paramOf(pointer: string): string | null {
	const parts = pointer
		.split("/")
		.slice(1)
		.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
	if (parts.length === 0) return null;
	return parts
		.map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : `${index > 0 ? "." : ""}${part}`))
		.join("")
		.slice(0, 128);
}
