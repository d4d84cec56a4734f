/** Numbers, money and times as people read them. Money is never divided as a float: digits are moved. */

const NANO_DIGITS = 9;
const NANO_PER_USD = 1_000_000_000;

/**
 * Short form of an amount: two decimals from one dollar on, four below it, and two significant digits where four
 * decimals would show nothing. `$1,204.50`, `$0.0312`, `$0.0000031`, `−$3.00`.
 */
export function formatUsd(nanoUsd: number): string {
	const size = Math.abs(nanoUsd);
	const decimals = size === 0 || size >= NANO_PER_USD ? 2 : size >= 100_000 ? 4 : significantDecimals(size, 2);
	return signed(nanoUsd, `$${decimalText(size, decimals).replace(/(\.\d\d\d*?)0+$/, "$1")}`);
}

/** Digits that an amount's short form has behind the point. */
export const usdDecimals = (nanoUsd: number): number => formatUsd(nanoUsd).split(".")[1]?.length ?? 0;

/** The whole amount, to the last nano-dollar that is not zero, with its currency. */
export function formatUsdExact(nanoUsd: number): string {
	const digits = decimalText(Math.abs(nanoUsd), NANO_DIGITS).replace(/0{1,7}$/, "");
	return signed(nanoUsd, `USD ${digits}`);
}

/** For axes and cards: `$1.2k`, `$340`, `$0.02`. */
export function formatUsdShort(nanoUsd: number): string {
	const usd = nanoUsd / NANO_PER_USD;
	if (Math.abs(usd) >= 1000) return `$${compactUsd.format(usd)}`;
	if (usd === 0) return "$0";
	if (Math.abs(usd) >= 10) return `$${Math.round(usd)}`;
	// Two digits that say something, and never fewer than whole cents.
	const [whole = "0", fraction = ""] = decimalText(Math.abs(Math.round(nanoUsd)), shortDecimals(usd)).split(".");
	return signed(usd, `$${whole}.${fraction.replace(/0+$/, "").padEnd(2, "0")}`);
}

/** A rate as the catalogue has it (decimal text): `$0.23`, `$0.0006`. */
export function formatRate(usd: string): string {
	const [whole = "0", fraction = ""] = usd.split(".");
	const trimmed = fraction.replace(/0+$/, "").padEnd(2, "0");
	return `$${Number(whole).toLocaleString("en-US")}.${trimmed}`;
}

function decimalText(size: number, decimals: number): string {
	const step = 10 ** (NANO_DIGITS - decimals);
	const rounded = Math.round(size / step);
	const digits = String(rounded).padStart(decimals + 1, "0");
	const whole = decimals === 0 ? digits : digits.slice(0, -decimals);
	const fraction = decimals === 0 ? "" : `.${digits.slice(-decimals)}`;
	return whole.replace(/\B(?=(\d{3})+$)/g, ",") + fraction;
}

/** Decimals that show `count` significant digits of an amount below one dollar. */
function significantDecimals(size: number, count: number): number {
	return Math.min(NANO_DIGITS, NANO_DIGITS - String(Math.trunc(size)).length + count);
}

/** For two significant digits; at least cents. */
function shortDecimals(usd: number): number {
	return Math.min(NANO_DIGITS, Math.max(2, 1 - Math.floor(Math.log10(Math.abs(usd)))));
}

const signed = (value: number, text: string): string => (value < 0 ? `−${text}` : text);

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const compactUsd = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export const formatCount = (value: number): string => whole.format(value);
export const formatCompact = (value: number): string =>
	Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value);

/** `84 ms`, `2.31 s`, `3 min 20 s`, `4 h 5 min`, `12 d`. */
export function formatDuration(ms: number | null): string {
	if (ms === null) return "–";
	if (ms < 1000) return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
	if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
	const seconds = Math.round(ms / 1000);
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
	if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
	return `${Math.floor(seconds / 86_400)} d`;
}

const dateTime = new Intl.DateTimeFormat(undefined, {
	year: "numeric",
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	hourCycle: "h23",
});
const clock = new Intl.DateTimeFormat(undefined, {
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	fractionalSecondDigits: 3,
	hourCycle: "h23",
});
const shortTime = new Intl.DateTimeFormat(undefined, {
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	hourCycle: "h23",
});
const date = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

export const formatDateTime = (atMs: number): string => dateTime.format(atMs);
export const formatLogTime = (atMs: number): string => shortTime.format(atMs);
export const formatClock = (atMs: number): string => clock.format(atMs);
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" });

/** The day in UTC. */
export const formatDay = (atMs: number): string => day.format(atMs);
export const formatDate = (atMs: number): string => date.format(atMs);
export const formatUtc = (atMs: number): string =>
	`${new Date(atMs).toISOString().replace("T", " ").replace("Z", "")} UTC`;

/** `3 min ago`, `in 2 d`; "just now" within ten seconds. */
export function formatAgo(atMs: number, nowMs: number): string {
	const distance = nowMs - atMs;
	const size = Math.abs(distance);
	if (size < 10_000) return "just now";
	const [amount, unit] =
		size < 60_000
			? [Math.round(size / 1000), "s"]
			: size < 3_600_000
				? [Math.round(size / 60_000), "min"]
				: size < 172_800_000
					? [Math.round(size / 3_600_000), "h"]
					: [Math.round(size / 86_400_000), "d"];
	return distance > 0 ? `${amount} ${unit} ago` : `in ${amount} ${unit}`;
}
