/** Distinguishable with common colour blindness (after Okabe and Ito), on light and dark. */
const SERIES = ["#0072b2", "#d98200", "#009e73", "#b8578d", "#56b4e9", "#c04f15", "#8c8f00", "#7a6ac8"] as const;
/** Series drawn one by one; the rest is combined. */
export const SERIES_MAX = SERIES.length;
const OTHER = "#8a939b";
/** Colours of series that are neither model nor key. */
const STATUS_COLORS: Readonly<Record<string, string>> = {
	other: OTHER,
	ok: "#009e73",
	failed: "#c04f15",
	left: "#d98200",
};

/**
 * Distinct colours of a chart's series: a model's by its place in the catalogue, otherwise by its name, or the next
 * free one. Unknown series are grey.
 */
export function seriesColors(ids: readonly string[], known: readonly string[]): (id: string) => string {
	const colors = new Map<string, string>();
	const placed = known.filter((id) => ids.includes(id));
	for (const id of ids) if (STATUS_COLORS[id] !== undefined) colors.set(id, STATUS_COLORS[id]);
	for (const id of [...placed, ...ids.filter((one) => !placed.includes(one)).sort()]) {
		if (colors.has(id)) continue;
		const place = known.indexOf(id);
		const wanted = place >= 0 ? place : hash(id);
		const taken = new Set(colors.values());
		const free = SERIES.map((_, step) => SERIES[(wanted + step) % SERIES.length] ?? OTHER);
		colors.set(id, free.find((color) => !taken.has(color)) ?? OTHER);
	}
	return (id) => STATUS_COLORS[id] ?? colors.get(id) ?? OTHER;
}

function hash(text: string): number {
	let sum = 0;
	for (const character of text) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
	return sum;
}
