import { msOfIso } from "../base/iso-date.ts";
import type { Page } from "../db/page.ts";
import { type NanoUsd, parseUsd } from "../money/nano-usd.ts";
import { type CommandInput, UsageError } from "./command.ts";

const SECONDS_OF_UNIT: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Parses "100" or "0.25": dollars, exact to nine decimals. */
export function usdOf(option: string, text: string): NanoUsd {
	const amount = parseUsd(text);
	if (amount === undefined)
		throw new UsageError(`--${option} must be an amount in USD such as 100 or 0.25, not ${shown(text)}`);
	return amount;
}

/** Parses "45s", "30m", "1h", "2d" or "0". */
export function durationMsOf(option: string, text: string): number {
	const match = /^(\d{1,9})([smhd])$/.exec(text);
	const seconds = text === "0" ? 0 : Number(match?.[1]) * (SECONDS_OF_UNIT[match?.[2] ?? ""] ?? Number.NaN);
	if (Number.isNaN(seconds))
		throw new UsageError(`--${option} must be a duration such as 45s, 30m, 1h or 2d, not ${shown(text)}`);
	return seconds * 1000;
}

/** Parses "2027-01-31" (its first moment in UTC) or "2027-01-31T12:00:00Z", with a zone. */
export function dateMsOf(option: string, text: string): number {
	const ms = msOfIso(text);
	if (ms === undefined)
		throw new UsageError(`--${option} must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z, not ${shown(text)}`);
	return ms;
}

export function wholeOf(option: string, text: string): number {
	if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${option} must be a whole number, not ${shown(text)}`);
	return Number(text);
}

/** Parses "a,b". An empty list comes from an unset variable and would mean all models, so it is refused. */
export function namesOf(option: string, text: string): string[] {
	const names = text
		.split(",")
		.map((name) => name.trim())
		.filter((name) => name !== "");
	if (names.length === 0) throw new UsageError(`--${option} must be names such as a,b, not ${shown(text)}`);
	return names;
}

/** The page that the options of a list command ask for. */
export function pageOf(input: CommandInput): Page {
	const limit = input.option("limit");
	return { ...(limit === undefined ? {} : { limit: wholeOf("limit", limit) }), after: input.option("after") ?? null };
}

function shown(text: string): string {
	return JSON.stringify(text.slice(0, 60));
}
