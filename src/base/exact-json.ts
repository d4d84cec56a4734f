import { Fault } from "./fault.ts";

/** Parses JSON without rounding: `JSON.stringify` reproduces the digits of numbers that a double cannot represent. */

declare global {
	/** Functions of the runtime that TypeScript's types lack. */
	interface JSON {
		parse(text: string, revive: (name: string, value: unknown, context: { source: string }) => unknown): unknown;
		rawJSON(text: string): ExactNumber;
		isRawJSON(value: unknown): value is ExactNumber;
	}
}

export interface ExactNumber {
	readonly rawJSON: string;
}

const WHOLE = /^-?\d+$/;

/**
 * Like `JSON.parse`, at six times its cost. Integers above 2^53, and numbers beyond a double's range, become
 * ExactNumbers. With `param`, the latter are Fault `invalid_request`.
 */
export function parseExactly(text: string, param?: string): unknown {
	return JSON.parse(text, (_name, value, { source }) => {
		if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
		if (Number.isFinite(value)) return WHOLE.test(source) ? JSON.rawJSON(source) : value;
		if (param === undefined) return JSON.rawJSON(source);
		throw new Fault("invalid_request", "`{param}` has a number beyond 1.8e308.", { values: { param }, param });
	});
}

/** Adds an integer to a number or ExactNumber; undefined if `value` is neither. */
export function addExactly(value: unknown, more: number): number | ExactNumber | undefined {
	if (typeof value === "number") return value + more;
	return JSON.isRawJSON(value) ? JSON.rawJSON(String(BigInt(value.rawJSON) + BigInt(more))) : undefined;
}
