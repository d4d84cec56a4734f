import { language, locale, t } from "./texts.tsx";

/** English numbers use US separators in every region, as the amounts in dollars do. */
const NUMBERS = language === "en" ? "en-US" : locale;
const whole = new Intl.NumberFormat(NUMBERS, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(NUMBERS, { notation: "compact", maximumFractionDigits: 1 });

export const formatCount = (value: number): string => whole.format(value);
export const formatCompact = (value: number): string =>
	Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value);

const percent = new Intl.NumberFormat(NUMBERS, { style: "percent", maximumFractionDigits: 1 });
export const formatPercent = (share: number): string => percent.format(share);

const fixed = new Map(([1, 2] as const).map((digits) => [digits, decimals(digits)]));
const formatFixed = (value: number, digits: 1 | 2): string => (fixed.get(digits) ?? whole).format(value);

/** Formats a tick of an axis. All ticks, which are `step` apart, get the same number of decimals. */
export const formatTick = (value: number, step: number): string =>
	step < 1 ? decimals(-Math.floor(Math.log10(step))).format(value) : (step < 1000 ? whole : compact).format(value);

function decimals(digits: number): Intl.NumberFormat {
	return new Intl.NumberFormat(NUMBERS, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Decimal and group separators for number fields, equal to those of the formats in this file. */
export const SEPARATORS =
	language === "de"
		? { thousandSeparator: ".", decimalSeparator: "," }
		: { thousandSeparator: ",", decimalSeparator: "." };

/** Formats a duration: `84 ms`, `2.31 s`, `3 min 20 s`, `4 h 5 min`, `12 d`. */
export function formatDuration(ms: number | null): string {
	if (ms === null) return "–";
	if (ms < 1000) return `${ms < 10 && !Number.isInteger(ms) ? formatFixed(ms, 1) : Math.round(ms)} ms`;
	if (ms < 60_000) return `${formatFixed(ms / 1000, ms < 10_000 ? 2 : 1)} s`;
	const seconds = Math.round(ms / 1000);
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
	if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
	return `${Math.floor(seconds / 86_400)} d`;
}

/** Formats a tick: in seconds (`0 s`, `2 s`) if ticks are at least one second apart, else in ms (`0 ms`, `500 ms`). */
export const formatDurationTick = (ms: number, stepMs: number): string =>
	stepMs < 1000 ? `${whole.format(ms)} ms` : `${whole.format(ms / 1000)} s`;

const dateTime = new Intl.DateTimeFormat(locale, {
	year: "numeric",
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	hourCycle: "h23",
});
const clock = new Intl.DateTimeFormat(locale, {
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	fractionalSecondDigits: 3,
	hourCycle: "h23",
});
const shortTime = new Intl.DateTimeFormat(locale, {
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	hourCycle: "h23",
});
const date = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric" });

export const formatDateTime = (atMs: number): string => dateTime.format(atMs);
export const formatLogTime = (atMs: number): string => shortTime.format(atMs);
export const formatClock = (atMs: number): string => clock.format(atMs);
const day = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" });

export const formatDay = (atMs: number): string => day.format(atMs);
export const formatDate = (atMs: number): string => date.format(atMs);
export const formatUtc = (atMs: number): string =>
	`${new Date(atMs).toISOString().replace("T", " ").replace("Z", "")} UTC`;

/** Formats a time relative to now: `3 min ago`, `in 2 d`; "just now" within ten seconds. */
export function formatAgo(atMs: number, nowMs: number): string {
	const distance = nowMs - atMs;
	const size = Math.abs(distance);
	if (size < 10_000) return t("just now");
	const [amount, unit] =
		size < 60_000
			? [Math.round(size / 1000), "s"]
			: size < 3_600_000
				? [Math.round(size / 60_000), "min"]
				: size < 172_800_000
					? [Math.round(size / 3_600_000), "h"]
					: [Math.round(size / 86_400_000), "d"];
	return distance > 0 ? t("{amount} {unit} ago", { amount, unit }) : t("in {amount} {unit}", { amount, unit });
}
