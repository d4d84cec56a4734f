import { expect, test } from "bun:test";
import { showStripeAmount } from "../../src/web/operator/attention.tsx";

test("Stripe's amounts have the decimals of their currency", () => {
	const shown = [
		[1_250, "usd"],
		[5, "eur"],
		[-1_250, "usd"],
		[1_250, "jpy"],
		[12_500, "kwd"],
		[12_500, "isk"],
		[900_719_925_474_099_1, "usd"],
		[1_250, null],
		[1_250, "no currency"],
	] as const;
	expect(shown.map(([units, currency]) => showStripeAmount(units, currency))).toEqual([
		"12.50 USD",
		"0.05 EUR",
		"-12.50 USD",
		"1250 JPY",
		"12.500 KWD",
		"125.00 ISK",
		"90071992547409.91 USD",
		"12.50",
		"12.50 NO CURRENCY",
	]);
});
