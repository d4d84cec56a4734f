import { formatDecimal } from "../../money/decimal.ts";

/** Stripe counts them in hundredths, although nobody else does. */
const STRIPE_HUNDREDTHS = ["ISK", "UGX"];

/** An amount as Stripe has it, in the smallest units of any currency: "12.50 EUR", "1250 JPY". */
export function showStripeAmount(units: number, currency: string | null): string {
	const code = (currency ?? "").toUpperCase();
	const places = placesOf(code);
	return `${places === 0 ? units : formatDecimal(units, places, places)} ${code}`.trim();
}

function placesOf(code: string): number {
	// What is no currency's code has hundredths, as most have.
	if (!/^[A-Z]{3}$/.test(code) || STRIPE_HUNDREDTHS.includes(code)) return 2;
	return (
		new Intl.NumberFormat("en", { style: "currency", currency: code }).resolvedOptions().maximumFractionDigits ?? 2
	);
}
