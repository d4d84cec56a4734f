import { formatDecimal, roundTo } from "./decimal.ts";
import type { CostLine, NanoUsd, PicoUsdPerUnit } from "./nano-usd.ts";
import { formatUsd, NANO_PER_USD } from "./nano-usd.ts";

/** Amounts and rates as people read them. They are rounded as integers and never divided. */

const NANO_DIGITS = 9;
const PICO_DIGITS = 12;
const MILLION_DIGITS = 6;
/** From here on four decimals say something: 0.0001 dollars. */
const FOUR_DECIMALS_FROM = 100_000;

/**
 * Short form: two decimals from one dollar on, four below it, and two significant digits where four decimals would show
 * nothing. `$1,204.50`, `$0.0312`, `$0.0000031`, `−$3.00`.
 */
export function showUsd(amount: NanoUsd): string {
	const size = Math.abs(amount);
	if (size === 0 || size >= NANO_PER_USD) return signed(amount, `$${rounded(size, 2)}`);
	return signed(amount, `$${rounded(size, size >= FOUR_DECIMALS_FROM ? 4 : significantDecimals(size, 2))}`);
}

/** Digits that the short form has behind the point. */
export const shownDecimals = (amount: NanoUsd): number => showUsd(amount).split(".")[1]?.length ?? 0;

/** The whole amount, to the last nano-dollar that is not zero: `USD 9,007,199.254740991`. */
export const showUsdExact = (amount: NanoUsd): string => signed(amount, `USD ${grouped(formatUsd(magnitude(amount)))}`);

/** For axes: `$1.2K`, `$340`, `$0.02`; two digits that say something, and never fewer than whole cents. */
export function showUsdShort(amount: NanoUsd): string {
	const size = Math.abs(amount);
	if (size === 0) return "$0";
	if (size >= 1_000 * NANO_PER_USD) return signed(amount, `$${compact(size)}`);
	if (size >= 10 * NANO_PER_USD) return signed(amount, `$${formatDecimal(roundTo(size, NANO_DIGITS), NANO_DIGITS, 0)}`);
	return signed(amount, `$${rounded(size, Math.max(2, significantDecimals(size, 2)))}`);
}

/** `$0.0006` each. */
export const showRatePerUnit = (rate: PicoUsdPerUnit): string => `$${grouped(formatDecimal(rate, PICO_DIGITS, 2))}`;

/** `$0.23` a million. */
export const showRatePerMillion = (rate: PicoUsdPerUnit): string =>
	`$${grouped(formatDecimal(rate, PICO_DIGITS - MILLION_DIGITS, 2))}`;

/** What a line of a bill comes to, all digits: a bill is rounded once, not each line. */
export const showLineCost = ({ units, rate }: CostLine): string =>
	`USD ${grouped(formatDecimal(BigInt(units) * BigInt(rate), PICO_DIGITS, 2))}`;

function rounded(size: number, decimals: number): string {
	return grouped(formatDecimal(roundTo(size, NANO_DIGITS - decimals), NANO_DIGITS, 2));
}

/** Three significant digits, in thousands or millions. */
function compact(size: number): string {
	const value = roundTo(size, String(size).length - 3);
	return value >= 1_000_000 * NANO_PER_USD
		? `${formatDecimal(value, NANO_DIGITS + 6, 0)}M`
		: `${formatDecimal(value, NANO_DIGITS + 3, 0)}K`;
}

/** Decimals that show `count` significant digits of an amount below ten dollars. */
function significantDecimals(size: number, count: number): number {
	return Math.min(NANO_DIGITS, NANO_DIGITS - String(size).length + count);
}

const grouped = (decimal: string): string => decimal.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
const magnitude = (amount: NanoUsd): NanoUsd => Math.abs(amount) as NanoUsd;
const signed = (amount: NanoUsd, text: string): string => (amount < 0 ? `−${text}` : text);
