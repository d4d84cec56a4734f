import { quoteValue, type YamlField, type YamlReader } from "./yaml-reader.ts";

/** Origins whose pages may call `/v1/`; an empty set means none. */
export type Cors = "*" | ReadonlySet<string>;

export const DEFAULT_CORS: Cors = "*";

const ORIGINS_MAX = 100;

/** Reads `cors:`: `off`, `"*"` or a list of origins, each in the format of browsers' `Origin` header. */
export function readCors(reader: YamlReader, field: YamlField | undefined): Cors {
	if (field === undefined) return DEFAULT_CORS;
	const origins = new Set<string>();
	if (!("items" in field.node)) {
		const word = reader.text(field, /^(off|\*)$/, 'must be off, "*" or a list of origins');
		return word === "*" ? word : origins;
	}
	const fits = (text: string) => URL.parse(text)?.origin === text;
	for (const item of reader.list(field, ORIGINS_MAX) ?? []) {
		const rule = (text: string) => `must be an origin such as https://app.example.com, got ${quoteValue(text)}`;
		const origin = reader.text(item, fits, rule);
		if (origin !== undefined) origins.add(origin);
	}
	return origins;
}
