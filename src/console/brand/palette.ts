import chroma from "chroma-js";

/** Ten shades of one colour, light to dark, and the accents of both themes. Hexadecimal, `#rrggbb`. */
export type Palette = ReturnType<typeof createPalette>;

export interface AccentColors {
	readonly fill: string;
	readonly text: string;
	readonly soft: string;
}

/** Least contrast ratio for text of any size (WCAG 2.2, criterion 1.4.3). */
export const CONTRAST_MIN = 4.5;
const LIGHTNESS = [0.96, 0.91, 0.83, 0.75, 0.68, 0.62, 0.56, 0.49, 0.42, 0.35] as const;
const STEP = 0.01;
const PAGE = { light: "#f5f7f8", dark: "#1f2428" } as const;

/** Derives a brand colour's palette. Accents are darkened or lightened until their contrast suffices. */
export function createPalette(color: string) {
	const [, chromaOf, hue] = chroma(color).oklch();
	// Greys have no hue, so their shades get no saturation either.
	const at = (lightness: number, strength = 1) =>
		chroma.oklch(lightness, chromaOf * strength, Number.isNaN(hue) ? 0 : hue).hex();
	const own = chroma(color).oklch()[0];
	const darker = (from: number, isGood: (hex: string) => boolean) => search(at, from, -STEP, isGood);
	const lighter = (from: number, isGood: (hex: string) => boolean) => search(at, from, STEP, isGood);
	const fill = darker(own, (hex) => contrastRatio(hex, "#ffffff") >= CONTRAST_MIN);
	const softLight = at(0.95, 0.25);
	const softDark = at(0.28, 0.4);
	return {
		shades: LIGHTNESS.map((lightness) => at(lightness, lightness > 0.9 ? 0.3 : 1)),
		light: { fill, text: darker(own, (hex) => readable(hex, PAGE.light, softLight)), soft: softLight },
		dark: { fill, text: lighter(own, (hex) => readable(hex, PAGE.dark, softDark)), soft: softDark },
	};
}

export const contrastRatio = (one: string, other: string): number => chroma.contrast(one, other);

function readable(hex: string, ...grounds: readonly string[]): boolean {
	return grounds.every((ground) => contrastRatio(hex, ground) >= CONTRAST_MIN);
}

function search(at: (lightness: number) => string, from: number, step: number, isGood: (hex: string) => boolean) {
	for (let lightness = from; lightness > 0 && lightness < 1; lightness += step) {
		const hex = at(lightness);
		if (isGood(hex)) return hex;
	}
	return step < 0 ? "#000000" : "#ffffff";
}
