import { isoOrNull } from "../base/iso-date.ts";
import type { CapPeriod } from "../keys/cap-period.ts";
import type { KeyRecord } from "../keys/key-admin.ts";
import type { KeySettings } from "../keys/key-settings.ts";
import type { ProjectRecord, ProjectSettings } from "../keys/project-admin.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { type CommandInput, UsageError } from "./command.ts";
import { dateMsOf, namesOf, usdOf, wholeOf } from "./option-values.ts";

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

export function limitsOf(input: CommandInput): ProjectSettings {
	const read = reader(input);
	return given({
		capNanoUsd: read("cap-usd", "none", usdOf),
		capPeriod: input.option("cap-period") as CapPeriod | undefined,
		models: read("models", "all", namesOf),
		requestsPerMinute: read("requests-per-minute", "none", wholeOf),
		concurrencyMax: read("concurrency", "none", wholeOf),
	});
}

export function keySettingsOf(input: CommandInput): KeySettings {
	const read = reader(input);
	const own = {
		expiresAtMs: read("expires", "never", dateMsOf),
		projectId: read("project", "none", (_, text) => text),
	};
	return { ...limitsOf(input), ...given(own) };
}

/** The changes of an update: these settings and the name. UsageError if none is given. */
export function changesOf<Settings extends object>(input: CommandInput, settings: Settings) {
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
>;

/** The limits of a key or a project, and what it has spent. */
export const limitsJson = (of: Capped) => ({
	cap_usd: of.capNanoUsd === null ? null : formatUsd(of.capNanoUsd),
	cap_period: of.capPeriod,
	cap_spent_usd: formatUsd(of.capSpentNanoUsd),
	cap_renews_at: isoOrNull(of.capRenewsAtMs),
	spent_usd: formatUsd(of.spentNanoUsd),
	models: of.models,
	requests_per_minute: of.requestsPerMinute,
	concurrency: of.concurrencyMax,
});

/** `5.00`, or `1.25 of 5.00 a day` for a cap that renews. */
export function capText({ capNanoUsd: cap, capPeriod, capSpentNanoUsd: spent }: Capped): string {
	if (cap === null) return "none";
	return capPeriod === "lifetime" ? formatUsd(cap) : `${formatUsd(spent)} of ${formatUsd(cap)} a ${capPeriod}`;
}

export const modelsText = ({ models }: Capped): string => (models.length === 0 ? "all" : models.join(","));

export const secretText = (key: { readonly prefix: string; readonly lastFour: string }): string =>
	`${key.prefix}…${key.lastFour}`;
