import { formatDecimal } from "../money/decimal.ts";
import { createUsdFormat, ENGLISH_USD, GERMAN_USD } from "../money/shown-usd.ts";
import { language } from "./texts.tsx";

export const { showUsd, showUsdExact, showUsdTick, showUsdWhole, showRatePerUnit, showRatePerMillion, showLineCost } =
	createUsdFormat(language === "de" ? GERMAN_USD : ENGLISH_USD);

/** Currencies without decimals whose amounts Stripe nevertheless sends in hundredths. */
const STRIPE_HUNDREDTHS = ["ISK", "UGX"];

/** Formats an amount in Stripe's smallest unit of the currency: "12.50 EUR", "1250 JPY". */
export function showStripeAmount(units: number, currency: string | null): string {
	const code = (currency ?? "").toUpperCase();
	const places = placesOf(code);
	return `${places === 0 ? units : formatDecimal(units, places, places)} ${code}`.trim();
}

function placesOf(code: string): number {
	// Unknown currencies get two decimals, as most currencies have.
	if (!/^[A-Z]{3}$/.test(code) || STRIPE_HUNDREDTHS.includes(code)) return 2;
	return (
		new Intl.NumberFormat("en", { style: "currency", currency: code }).resolvedOptions().maximumFractionDigits ?? 2
	);
}
