import { expect, test } from "bun:test";
import { SERIES_MAX, seriesColors } from "../../src/web/series-colors.ts";

test("no two lines of a chart have the same colour; a model has that of its place in the catalogue wherever it can", () => {
	const known = Array.from({ length: 20 }, (_, at) => `model-${at}`);
	const ids = Array.from({ length: SERIES_MAX }, (_, at) => `key_${at}`);
	for (const drawn of [
		ids,
		known.slice(0, 8),
		known.slice(12),
		["model-1", "model-9", "model-17"],
		[...ids.slice(1), "ok"],
	]) {
		const color = seriesColors(drawn, known);
		expect(new Set(drawn.map(color)).size).toBe(drawn.length);
		expect(drawn.toReversed().map(seriesColors(drawn.toReversed(), known))).toEqual(drawn.map(color).toReversed());
	}
	const alone = (id: string) => seriesColors([id], known)(id);
	expect(seriesColors(known.slice(0, 8), known)("model-3")).toBe(alone("model-3"));
	expect(seriesColors(["key_1", "model-3"], known)("model-3")).toBe(alone("model-3"));
	// One that has left the catalogue takes no colour from one that is in it.
	const gone = ids
		.concat("a", "b", "c", "d", "e", "f", "g", "h")
		.filter((id) => alone(id) === alone("model-3") && id < "m");
	expect(gone).not.toEqual([]);
	for (const id of gone) expect(seriesColors([id, "model-3"], known)("model-3")).toBe(alone("model-3"));
	expect(alone("model-3")).toBe(alone("model-11"));
	expect(seriesColors(ids, known)("key_100")).toBe(seriesColors([], [])("other"));
});
