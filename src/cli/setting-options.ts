import type { CapPeriod } from "../keys/cap-period.ts";
import type { KeySettings } from "../keys/key-settings.ts";
import type { ProjectSettings } from "../keys/project-admin.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { type CommandInput, type OptionSpec, UsageError } from "./command.ts";
import { dateMsOf, namesOf, usdOf, wholeOf } from "./option-values.ts";

/** Settings that keys and projects share. */
export const LIMIT_OPTIONS = {
	"cap-usd": { type: "string", value: "USD", help: "the most that it may spend, or none" },
	"cap-period": {
		type: "string",
		value: "P",
		help: "how often the cap begins anew in the account's time zone: lifetime (never), day, week or month",
	},
	models: { type: "string", value: "A,B", help: "ids of the models that it may use, or all" },
	"requests-per-minute": { type: "string", value: "N", help: "the most requests a minute, or none" },
	concurrency: { type: "string", value: "N", help: "the most requests at once, or none" },
} as const satisfies Record<string, OptionSpec>;

export const KEY_OPTIONS = {
	...LIMIT_OPTIONS,
	expires: { type: "string", value: "ISO", help: "when it ends: 2027-01-31 or 2027-01-31T12:00:00Z, or never" },
	project: { type: "string", value: "ID", help: "the project that it belongs to, or none" },
} as const satisfies Record<string, OptionSpec>;

type Read = <Value>(
	option: keyof typeof KEY_OPTIONS,
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
	if (Object.keys(changes).length === 0) throw new UsageError("nothing to change was given");
	return changes;
}

/** `5.00`, or `1.25 of 5.00 a day` for a cap that renews. */
export function capText({
	capNanoUsd: cap,
	capPeriod,
	capSpentNanoUsd: spent,
}: Required<Pick<ProjectSettings, "capNanoUsd" | "capPeriod">> & {
	readonly capSpentNanoUsd: Parameters<typeof formatUsd>[0];
}): string {
	if (cap === null) return "none";
	return capPeriod === "lifetime" ? formatUsd(cap) : `${formatUsd(spent)} of ${formatUsd(cap)} a ${capPeriod}`;
}
