import { expect, test } from "bun:test";
import { CONTRAST_MIN, contrastRatio, createPalette } from "../../../src/console/brand/palette.ts";
import { createRandom } from "../../support/random.ts";

/** Backgrounds in the pages' style sheets on which text in the accent colour appears. */
const GROUNDS = { light: ["#ffffff", "#f5f7f8", "#fafbfb"], dark: ["#131618", "#191d20", "#1f2428"] } as const;
const EDGES = ["#000000", "#ffffff", "#808080", "#ffff00", "#00ff00", "#0000ff", "#ff0000", "#fefefe", "#010101"];

test("text in the accent colour, or on it, has the contrast that WCAG requires", () => {
	const random = createRandom(1);
	const colors = [
		...EDGES,
		...Array.from({ length: 300 }, () => `#${random.int(0, 0xffffff).toString(16).padStart(6, "0")}`),
	];
	const pale: string[] = [];
	for (const color of colors) {
		const { shades, ...schemes } = createPalette(color);
		expect(shades).toHaveLength(10);
		for (const scheme of ["light", "dark"] as const) {
			const { fill, text, soft } = schemes[scheme];
			if (contrastRatio(fill, "#ffffff") < CONTRAST_MIN) pale.push(`${color}: white on ${fill}`);
			for (const ground of [...GROUNDS[scheme], soft])
				if (contrastRatio(text, ground) < CONTRAST_MIN) pale.push(`${color}, ${scheme}: ${text} on ${ground}`);
		}
	}
	expect(pale).toEqual([]);
});

test("an accent colour that is readable stays unchanged", () => {
	expect(createPalette("#17637f").light).toMatchObject({ fill: "#17637f", text: "#17637f" });
});
