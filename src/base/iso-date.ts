const FORM = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Parses "2027-01-31" (the start of that day in UTC) or "2027-01-31T12:00:00Z" to Unix milliseconds. Undefined for
 * other texts, and for impossible days, which `Date.parse` would move to the next month.
 */
export function parseIsoMs(text: string): number | undefined {
	const ms = FORM.test(text) ? Date.parse(text) : Number.NaN;
	if (Number.isNaN(ms)) return undefined;
	const day = text.slice(0, 10);
	const first = Date.parse(`${day}T00:00:00Z`);
	return !Number.isNaN(first) && new Date(first).toISOString().startsWith(day) ? ms : undefined;
}

export function isoOrNull(ms: number | null): string | null {
	return ms === null ? null : new Date(ms).toISOString();
}
