import { formatDecimal, roundToPowerOfTen } from "./decimal.ts";
import { type CostLine, formatUsd, NANO_PER_USD, type NanoUsd, type PicoUsdPerUnit } from "./nano-usd.ts";

/** Formats amounts and rates for display. They are rounded as integers. */

const NANO_DIGITS = 9;
const PICO_DIGITS = 12;
const MILLION_DIGITS = 6;
/** Amounts from 0.0001 dollars on are shown with four decimals. */
const FOUR_DECIMALS_FROM = 100_000;

/** How a language writes dollar amounts. */
export interface UsdStyle {
	readonly point: string;
	readonly group: string;
	readonly dollars: (digits: string) => string;
	/** Suffixes of amounts in thousands and in millions. */
	readonly thousands: string;
	readonly millions: string;
}

export const ENGLISH_USD: UsdStyle = {
	point: ".",
	group: ",",
	dollars: (digits) => `$${digits}`,
	thousands: "K",
	millions: "M",
};

/** As in CLDR's locale data, the currency sign follows the digits after a no-break space. */
export const GERMAN_USD: UsdStyle = {
	point: ",",
	group: ".",
	dollars: (digits) => `${digits}\u00a0$`,
	thousands: "\u00a0Tsd.",
	millions: "\u00a0Mio.",
};

export function createUsdFormat({ point, group, dollars, thousands, millions }: UsdStyle) {
	function grouped(decimal: string): string {
		const [whole = "", fraction] = decimal.split(".");
		const digits = whole.replace(/\B(?=(\d{3})+$)/g, group);
		return fraction === undefined ? digits : digits + point + fraction;
	}
	const rounded = (size: number, decimals: number): string =>
		grouped(formatDecimal(roundToPowerOfTen(size, NANO_DIGITS - decimals), NANO_DIGITS, 2));

	/** Three significant digits, with a suffix for thousands or millions. */
	function compact(size: number): string {
		const value = roundToPowerOfTen(size, String(size).length - 3);
		return value >= 1_000_000 * NANO_PER_USD
			? `${grouped(formatDecimal(value, NANO_DIGITS + 6, 0))}${millions}`
			: `${grouped(formatDecimal(value, NANO_DIGITS + 3, 0))}${thousands}`;
	}

	const whole = (amount: NanoUsd): string =>
		signed(amount, dollars(grouped(formatDecimal(roundToPowerOfTen(Math.abs(amount), NANO_DIGITS), NANO_DIGITS, 0))));

	return {
		/** Whole dollars without cents, such as `$1,000`. */
		showUsdWhole: whole,

		/**
		 * Short form: two decimals from one dollar on, below that four, or two significant digits if four decimals are
		 * zero. `$1,204.50`, `$0.0312`, `$0.0000031`, `−$3.00`.
		 */
		showUsd: (amount: NanoUsd): string => signed(amount, dollars(rounded(Math.abs(amount), decimalsOf(amount)))),

		/** The exact amount, without trailing zeros: `$9,007,199.254740991`. */
		showUsdExact: (amount: NanoUsd): string => signed(amount, dollars(grouped(formatUsd(magnitude(amount))))),

		/** Labels of an axis whose ticks are `step` apart: `$0.00`, `$0.05`; `$0`, `$20`; `$0`, `$5K`. */
		showUsdTick(amount: NanoUsd, step: number): string {
			const size = Math.abs(amount);
			if (step < NANO_PER_USD) {
				const decimals = Math.max(2, NANO_DIGITS - Math.floor(Math.log10(step)));
				return signed(
					amount,
					dollars(grouped(formatDecimal(roundToPowerOfTen(size, NANO_DIGITS - decimals), NANO_DIGITS, decimals))),
				);
			}
			if (size === 0 || step < 1_000 * NANO_PER_USD) return whole(amount);
			return signed(amount, dollars(compact(size)));
		},

		showRatePerUnit: (rate: PicoUsdPerUnit): string => dollars(grouped(formatDecimal(rate, PICO_DIGITS, 2))),

		showRatePerMillion: (rate: PicoUsdPerUnit): string =>
			dollars(grouped(formatDecimal(rate, PICO_DIGITS - MILLION_DIGITS, 2))),

		/** Exact cost of a line of a bill, because only the bill's total is rounded. */
		showLineCost: ({ units, rate }: CostLine): string =>
			dollars(grouped(formatDecimal(BigInt(units) * BigInt(rate), PICO_DIGITS, 2))),
	};
}

export const shownDecimals = (amount: NanoUsd): number => ENGLISH.showUsd(amount).split(".")[1]?.length ?? 0;

const ENGLISH = createUsdFormat(ENGLISH_USD);

/** Number of decimals of an amount in the short form. */
function decimalsOf(amount: NanoUsd): number {
	const size = Math.abs(amount);
	if (size === 0 || size >= NANO_PER_USD) return 2;
	return size >= FOUR_DECIMALS_FROM ? 4 : significantDecimals(size, 2);
}

/** Number of decimals that show `count` significant digits of an amount below ten dollars. */
function significantDecimals(size: number, count: number): number {
	return Math.min(NANO_DIGITS, NANO_DIGITS - String(size).length + count);
}

const magnitude = (amount: NanoUsd): NanoUsd => Math.abs(amount) as NanoUsd;
const signed = (amount: NanoUsd, text: string): string => (amount < 0 ? `−${text}` : text);
