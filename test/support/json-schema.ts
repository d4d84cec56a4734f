/**
 * The subset of JSON Schema 2020-12 that the service's description uses. An unknown keyword is an error, not a pass.
 */

type Schema = Readonly<Record<string, unknown>>;

const ANNOTATIONS = new Set(["description", "format", "contentMediaType", "title"]);

/** The first violation as text; undefined if the value is valid. `root` is the document that `$ref`s point into. */
export function violationOf(root: unknown, schema: Schema, value: unknown, path = "$"): string | undefined {
	for (const [keyword, rule] of Object.entries(schema)) {
		if (ANNOTATIONS.has(keyword)) continue;
		const check = KEYWORDS[keyword];
		if (check === undefined) return `${path}: unknown keyword ${keyword}`;
		const found = check({ root, schema, rule, value, path });
		if (found !== undefined) return found;
	}
	return undefined;
}

interface Case {
	root: unknown;
	schema: Schema;
	// biome-ignore lint/suspicious/noExplicitAny: a schema's rule is of any shape.
	rule: any;
	// biome-ignore lint/suspicious/noExplicitAny: so is what it is held against.
	value: any;
	path: string;
}

export function resolveRef(root: unknown, ref: string): Schema {
	let found: unknown = root;
	for (const part of ref.slice(2).split("/")) found = (found as Record<string, unknown> | undefined)?.[part];
	if (typeof found !== "object" || found === null) throw new Error(`the reference ${ref} leads nowhere`);
	return found as Schema;
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
const fail = (ok: boolean, text: string) => (ok ? undefined : text);

const TYPES: Record<string, (value: unknown) => boolean> = {
	object: isObject,
	array: Array.isArray,
	string: (value) => typeof value === "string",
	number: (value) => typeof value === "number",
	integer: Number.isInteger,
	boolean: (value) => typeof value === "boolean",
	null: (value) => value === null,
};

const KEYWORDS: Record<string, (given: Case) => string | undefined> = {
	$ref: ({ root, rule, value, path }) => violationOf(root, resolveRef(root, rule), value, path),
	type: ({ rule, value, path }) =>
		fail(TYPES[rule]?.(value) === true, `${path}: ${JSON.stringify(value)} is no ${rule}`),
	const: ({ rule, value, path }) =>
		fail(value === rule, `${path}: ${JSON.stringify(value)} is not ${JSON.stringify(rule)}`),
	anyOf({ root, rule, value, path }) {
		const found = (rule as Schema[]).map((one) => violationOf(root, one, value, path));
		return fail(found.includes(undefined), `${path}: no alternative fits: ${found.join("; ")}`);
	},
	required: ({ rule, value, path }) => {
		const missing = (rule as string[]).find((name) => isObject(value) && !(name in value));
		return fail(missing === undefined, `${path}: ${missing} is missing`);
	},
	properties({ root, rule, value, path }) {
		if (!isObject(value)) return undefined;
		for (const [name, schema] of Object.entries(rule as Record<string, Schema>)) {
			if (!(name in value)) continue;
			const found = violationOf(root, schema, value[name], `${path}.${name}`);
			if (found !== undefined) return found;
		}
		return undefined;
	},
	patternProperties({ root, rule, value, path }) {
		if (!isObject(value)) return undefined;
		for (const [pattern, schema] of Object.entries(rule as Record<string, Schema>)) {
			for (const name of Object.keys(value)) {
				if (!new RegExp(pattern).test(name)) continue;
				const found = violationOf(root, schema, value[name], `${path}.${name}`);
				if (found !== undefined) return found;
			}
		}
		return undefined;
	},
	additionalProperties({ rule, schema, value, path }) {
		if (rule !== false || !isObject(value)) return undefined;
		const known = Object.keys((schema.properties as object | undefined) ?? {});
		const extra = Object.keys(value).find((name) => !known.includes(name));
		return fail(extra === undefined, `${path}: ${extra} is not described`);
	},
	items({ root, rule, value, path }) {
		if (!Array.isArray(value)) return undefined;
		for (const [at, item] of value.entries()) {
			const found = violationOf(root, rule, item, `${path}[${at}]`);
			if (found !== undefined) return found;
		}
		return undefined;
	},
	minItems: ({ rule, value, path }) => fail(!Array.isArray(value) || value.length >= rule, `${path}: too short`),
	maxItems: ({ rule, value, path }) => fail(!Array.isArray(value) || value.length <= rule, `${path}: too long`),
	minLength: ({ rule, value, path }) => fail(typeof value !== "string" || value.length >= rule, `${path}: too short`),
	maxLength: ({ rule, value, path }) => fail(typeof value !== "string" || value.length <= rule, `${path}: too long`),
	minimum: ({ rule, value, path }) => fail(typeof value !== "number" || value >= rule, `${path}: too small`),
	maximum: ({ rule, value, path }) => fail(typeof value !== "number" || value <= rule, `${path}: too large`),
	pattern: ({ rule, value, path }) =>
		fail(typeof value !== "string" || new RegExp(rule).test(value), `${path}: ${JSON.stringify(value)} does not match`),
};
