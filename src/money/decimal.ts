/** Converts integers that count units of 10^-places to and from decimal text, without division. */

/** Parses plain decimal digits; undefined if malformed, with more than `places` decimals, or above 2^53 − 1. */
export function parseDecimal(text: string, places: number): number | undefined {
	const match = /^(\d{1,16})(?:\.(\d{1,100}))?$/.exec(text);
	if (match === null) return undefined;
	const fraction = (match[2] ?? "").replace(/0+$/, "");
	if (fraction.length > places) return undefined;
	const scaled = BigInt(match[1] + fraction.padEnd(places, "0"));
	return scaled > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(scaled);
}

/** Formats all digits, with at least `placesMin` decimals and never with an exponent. */
export function formatDecimal(value: number | bigint, places: number, placesMin: number): string {
	const sign = value < 0 ? "-" : "";
	const digits = String(value < 0 ? -value : value).padStart(places + 1, "0");
	const fraction = digits.slice(-places).replace(/0+$/, "").padEnd(placesMin, "0");
	const whole = sign + digits.slice(0, -places);
	return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** Rounds to a multiple of 10^places, halves up. `value` must be an integer of 0 or more. */
export function roundToPowerOfTen(value: number, places: number): number {
	const step = 10 ** Math.max(0, places);
	const rest = value % step;
	return value - rest + (rest * 2 >= step && step > 1 ? step : 0);
}
