import { parseIsoMs } from "../base/iso-date.ts";
import type { PageQuery } from "../db/page.ts";
import type { AccountChanges } from "../keys/account-admin.ts";
import type { CapPeriod } from "../keys/cap-period.ts";
import type { KeyRecord } from "../keys/key-admin.ts";
import type { KeySettings } from "../keys/key-settings.ts";
import type { ProjectRecord, ProjectSettings } from "../keys/project-admin.ts";
import { jsonFields } from "../money/json-fields.ts";
import { formatUsd, type NanoUsd, parseUsd } from "../money/nano-usd.ts";
import { type CommandInput, UsageError } from "./command.ts";

const SECONDS_OF_UNIT: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Parses an amount in dollars, such as "100" or "0.25", exactly, with up to nine decimals. */
export function parseUsdOption(option: string, text: string): NanoUsd {
	const amount = parseUsd(text);
	if (amount === undefined)
		throw new UsageError(`--${option} must be an amount in USD such as 100 or 0.25, not ${shown(text)}`);
	return amount;
}

/** Parses a duration: "45s", "30m", "1h", "2d" or "0". */
export function parseDurationMs(option: string, text: string): number {
	const match = /^(\d{1,9})([smhd])$/.exec(text);
	const seconds = text === "0" ? 0 : Number(match?.[1]) * (SECONDS_OF_UNIT[match?.[2] ?? ""] ?? Number.NaN);
	if (Number.isNaN(seconds))
		throw new UsageError(`--${option} must be a duration such as 45s, 30m, 1h or 2d, not ${shown(text)}`);
	return seconds * 1000;
}

/** Parses "2027-01-31" (its start in UTC), or a time with a zone such as "2027-01-31T12:00:00Z". */
export function parseDateMs(option: string, text: string): number {
	const ms = parseIsoMs(text);
	if (ms === undefined)
		throw new UsageError(`--${option} must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z, not ${shown(text)}`);
	return ms;
}

function wholeOf(option: string, text: string): number {
	if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${option} must be a whole number, not ${shown(text)}`);
	return Number(text);
}

/** Parses "a,b". Refuses an empty list, which would mean all models and probably comes from an unset variable. */
export function parseNames(option: string, text: string): string[] {
	const names = text
		.split(",")
		.map((name) => name.trim())
		.filter((name) => name !== "");
	if (names.length === 0) throw new UsageError(`--${option} must be names such as a,b, not ${shown(text)}`);
	return names;
}

export function parsePage(input: CommandInput): PageQuery {
	const limit = input.option("limit");
	return { ...(limit === undefined ? {} : { limit: wholeOf("limit", limit) }), after: input.option("after") ?? null };
}

const shown = (text: string): string => JSON.stringify(text.slice(0, 60));

type Read = <Value>(
	option: string,
	none: string,
	parse: (option: string, text: string) => Value,
) => Value | null | undefined;

const reader =
	(input: CommandInput): Read =>
	(option, none, parse) => {
		const text = input.option(option);
		return text === undefined ? undefined : text === none ? null : parse(option, text);
	};

const given = (settings: Record<string, unknown>): object =>
	Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));

export function parseLimits(input: CommandInput): ProjectSettings {
	const read = reader(input);
	return given({
		capNanoUsd: read("cap-usd", "none", parseUsdOption),
		capPeriod: input.option("cap-period") as CapPeriod | undefined,
		models: read("models", "all", parseNames),
		requestsPerMinute: read("requests-per-minute", "none", wholeOf),
		concurrencyMax: read("concurrency", "none", wholeOf),
		tokensPerMinute: read("tokens-per-minute", "none", wholeOf),
	});
}

export function parseKeySettings(input: CommandInput): KeySettings {
	const read = reader(input);
	const own = {
		expiresAtMs: read("expires", "never", parseDateMs),
		projectId: read("project", "none", (_, text) => text),
	};
	return { ...parseLimits(input), ...given(own) };
}

export function parseAccountTerms(input: CommandInput): AccountChanges {
	const read = reader(input);
	const tags = read("tags", "none", parseNames);
	return given({
		timeZone: input.option("time-zone"),
		tags: tags === null ? [] : tags,
		tokensPerMinute: read("tokens-per-minute", "none", wholeOf),
	});
}

/** Returns changed settings and name. UsageError if the options change nothing. */
export function parseChanges<Settings extends object>(input: CommandInput, settings: Settings) {
	const changes = { ...settings, ...given({ name: input.option("name") }) } as Settings & { readonly name?: string };
	if (Object.keys(changes).length === 0) throw new UsageError("give at least one setting to change");
	return changes;
}

type Capped = Pick<
	KeyRecord & ProjectRecord,
	| "capNanoUsd"
	| "capPeriod"
	| "capSpentNanoUsd"
	| "capRenewsAtMs"
	| "spentNanoUsd"
	| "models"
	| "requestsPerMinute"
	| "concurrencyMax"
	| "tokensPerMinute"
>;

export const limitsJson = (of: Capped) => ({
	...jsonFields("cap_usd cap_period cap_spent_usd cap_renews_at spent_usd models requests_per_minute", of),
	concurrency: of.concurrencyMax,
	tokens_per_minute: of.tokensPerMinute,
});

/** Formats a cap: `5.00`, or `1.25 of 5.00 a day` for a cap that renews. */
export function capText({ capNanoUsd: cap, capPeriod, capSpentNanoUsd: spent }: Capped): string {
	if (cap === null) return "none";
	return capPeriod === "lifetime" ? formatUsd(cap) : `${formatUsd(spent)} of ${formatUsd(cap)} a ${capPeriod}`;
}

export const modelsText = ({ models }: Capped): string => (models.length === 0 ? "all" : models.join(","));

export const secretText = (key: { readonly prefix: string; readonly lastFour: string }): string =>
	`${key.prefix}…${key.lastFour}`;
