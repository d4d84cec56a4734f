import { type ValueError, type ValueErrorIterator, ValueErrorType } from "@sinclair/typebox/errors";

/** First error of a check, with its innermost cause and its path: `tools[0].type`. */
export function bodyProblem(errors: ValueErrorIterator): { param: string | null; message: string } {
	const found = errors.First();
	const [error, ...others] = found ? placesOf(found) : [];
	const param = error ? paramOf(error.path) : null;
	if (error === undefined || param === null)
		return { param: null, message: "The request is malformed. Compare it with /openapi.json." };
	return { param, message: `\`${param}\` ${problemText(error, others)}.` };
}

/**
 * For a union, reports the variant that matches deepest ("an array with a bad element", not "neither an array nor
 * null"). Prefers a variant whose type name matches, and one whose value is only too long or too large. If all end at
 * the same place, all are reported.
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

const ERRORS_MAX = 16;

/** A variant with another type name was not meant, whatever else is missing. */
function wrongNameOrFirst(variant: ValueErrorIterator): ValueError | undefined {
	let first: ValueError | undefined;
	let seen = 0;
	for (const error of variant) {
		if (error.type === ValueErrorType.Literal) return error;
		first ??= error;
		seen += 1;
		if (seen === ERRORS_MAX) break;
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

/** Says what is expected, but never the value found, which may be a prompt. */
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

/** Path in OpenAI's notation: `/messages/0/role` → `messages[0].role`. Names chosen by the client are shortened. */
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
