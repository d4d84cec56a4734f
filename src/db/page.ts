import { Fault } from "../base/fault.ts";

/** A page of a list: newest first, `limit` rows older than the one with id `after`. */
export interface Page {
	readonly limit?: number;
	readonly after?: string | null;
}

export interface Listed<Row> {
	readonly items: readonly Row[];
	/** The `after` of the next page; null if this is the last one. */
	readonly next: string | null;
}

const ROWS_DEFAULT = 50;
const ROWS_MAX = 1000;

/** Rows to query: one more than the page shows whether there is a next page. Fault invalid_request if out of range. */
export function pageBounds(page: Page): { shown: number; asked: number; after: string | null } {
	const shown = page.limit ?? ROWS_DEFAULT;
	if (!Number.isInteger(shown) || shown < 1 || shown > ROWS_MAX) {
		throw new Fault("invalid_request", "`limit` must be 1 to {most}.", { values: { most: ROWS_MAX }, param: "limit" });
	}
	return { shown, asked: shown + 1, after: page.after ?? null };
}

export function listed<Row extends { readonly id: string }>(rows: readonly Row[], shown: number): Listed<Row> {
	const items = rows.slice(0, shown);
	return { items, next: rows.length > shown ? (items.at(-1)?.id ?? null) : null };
}
