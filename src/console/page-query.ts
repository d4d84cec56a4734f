import { t } from "elysia";
import { type NanoUsd, nanoUsd, parseUsd } from "../money/nano-usd.ts";
import { ConsoleError } from "./console-error.ts";

/** Query parameter of every route: the account that it concerns. The console's router reads it. */
export const ACCOUNT_QUERY = { account: t.Optional(t.String({ maxLength: 64 })) };

export const PAGE_QUERY = {
	...ACCOUNT_QUERY,
	after: t.Optional(t.String({ maxLength: 128 })),
	limit: t.Optional(t.Numeric({ minimum: 1, maximum: 200, multipleOf: 1 })),
};

const LIMIT_DEFAULT = 50;

export const EMPTY_BODY = t.Object({}, { additionalProperties: true });
export const USD = t.String({ minLength: 1, maxLength: 32 });
export const REASON = t.String({ minLength: 3, maxLength: 500 });

export function pageOf(query: { after?: string | undefined; limit?: number | undefined }): {
	shown: number;
	asked: number;
	after: string | null;
} {
	const shown = query.limit ?? LIMIT_DEFAULT;
	return { shown, asked: shown + 1, after: query.after ?? null };
}

export function pageOfRows<Row>(rows: readonly Row[], shown: number, cursorOf: (row: Row) => string) {
	const items = rows.slice(0, shown);
	const last = items.at(-1);
	return { items, next: rows.length > shown && last !== undefined ? cursorOf(last) : null };
}

/** Parses decimal dollars; accepts a sign only if `signed`. Fault invalid_request with `param`. */
export function amountOf(text: string, param: string, signed = false): NanoUsd {
	const negative = signed && text.startsWith("-");
	const amount = parseUsd(negative ? text.slice(1) : text);
	if (amount === undefined)
		throw new ConsoleError("invalid_request", "Enter an amount in US dollars, such as 25.00.", { param });
	return negative ? nanoUsd(-amount) : amount;
}
