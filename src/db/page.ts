import { Fault } from "../base/fault.ts";

/** A page of a list: newest first, up to `limit` rows older than the row with id `after`. */
export interface PageQuery {
	readonly limit?: number | undefined;
	readonly after?: string | null | undefined;
}

export interface ListPage<Row> {
	readonly items: readonly Row[];
	/** Value of `after` for the next page; null on the last one. */
	readonly next: string | null;
}

const ROWS_DEFAULT = 50;
const ROWS_MAX = 1000;

/** `asked`: rows to query, one more than `shown`, to know whether another page follows. Fault invalid_request. */
export function pageBounds(page: PageQuery): { shown: number; asked: number; after: string | null } {
	const shown = page.limit ?? ROWS_DEFAULT;
	if (!Number.isInteger(shown) || shown < 1 || shown > ROWS_MAX) {
		throw new Fault("invalid_request", "`limit` must be 1 to {most}.", { values: { most: ROWS_MAX }, param: "limit" });
	}
	return { shown, asked: shown + 1, after: page.after ?? null };
}

export const idOf = ({ id }: { readonly id: string }): string => id;

export const toPageById = <Row extends { readonly id: string }>(rows: readonly Row[], shown: number): ListPage<Row> =>
	toPage(rows, shown, idOf);

export function toPage<Row>(rows: readonly Row[], shown: number, cursorOf: (row: Row) => string) {
	const items = rows.slice(0, shown);
	const last = items.at(-1);
	return { items, next: rows.length > shown && last !== undefined ? cursorOf(last) : null };
}

/** A page of a list whose rows `read` returns. Fault invalid_request if `limit` is out of range. */
export async function pageFrom<Row>(
	page: PageQuery,
	read: (page: { asked: number; after: string | null }) => Promise<readonly Row[]>,
	cursorOf: (row: Row) => string,
) {
	const { shown, ...bounds } = pageBounds(page);
	return toPage(await read(bounds), shown, cursorOf);
}
