/** Checks values against the service's description (JSON Schema 2020-12). An unknown keyword is an error, not a pass. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

type Schema = Readonly<Record<string, unknown>>;

const ajv = new Ajv2020({ strictTypes: false, validateFormats: false }).addVocabulary(["components"]);
const compiled = new WeakMap<Schema, ValidateFunction>();

/** Returns the first violation as text; undefined if the value is valid. `$ref`s point into `root`. */
export function findViolation(root: Schema, schema: Schema, value: unknown): string | undefined {
	const validate = compiled.get(schema) ?? ajv.compile({ ...schema, components: root.components });
	compiled.set(schema, validate);
	return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

export function resolveRef(root: unknown, ref: string): Schema {
	let found: unknown = root;
	for (const part of ref.slice(2).split("/")) found = (found as Record<string, unknown> | undefined)?.[part];
	if (typeof found !== "object" || found === null) throw new Error(`the reference ${ref} leads nowhere`);
	return found as Schema;
}
