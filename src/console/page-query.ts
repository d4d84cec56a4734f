import { t } from "elysia";
import { type NanoUsd, nanoUsd, parseUsd } from "../money/nano-usd.ts";
import { ConsoleError } from "./console-error.ts";

/** Query of routes about one account. Declared for the types; the console's router reads the parameter. */
export const ACCOUNT_QUERY = {
	schema: "standalone",
	query: t.Object({ account: t.Optional(t.String({ maxLength: 64 })) }),
} as const;

export const PAGE_QUERY = {
	after: t.Optional(t.String({ maxLength: 128 })),
	limit: t.Optional(t.Numeric({ minimum: 1, maximum: 200, multipleOf: 1 })),
};

export const USD = t.String({ minLength: 1, maxLength: 32 });
export const REASON = t.String({ minLength: 3, maxLength: 500 });

/** Parses decimal dollars; a minus sign only with `signed`. Fault `invalid_request`, naming `param`. */
export function parseAmount(text: string, param: string, signed = false): NanoUsd {
	const negative = signed && text.startsWith("-");
	const amount = parseUsd(negative ? text.slice(1) : text);
	if (amount === undefined)
		throw new ConsoleError("invalid_request", "Enter an amount in US dollars, such as 25.00.", { param });
	return negative ? nanoUsd(-amount) : amount;
}
