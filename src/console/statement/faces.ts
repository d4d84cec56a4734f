import { readFileSync } from "node:fs";
import cyrillic from "@fontsource/noto-sans/files/noto-sans-cyrillic-400-normal.woff" with { type: "file" };
import cyrillicExt from "@fontsource/noto-sans/files/noto-sans-cyrillic-ext-400-normal.woff" with { type: "file" };
import devanagari from "@fontsource/noto-sans/files/noto-sans-devanagari-400-normal.woff" with { type: "file" };
import greek from "@fontsource/noto-sans/files/noto-sans-greek-400-normal.woff" with { type: "file" };
import greekExt from "@fontsource/noto-sans/files/noto-sans-greek-ext-400-normal.woff" with { type: "file" };
import latin from "@fontsource/noto-sans/files/noto-sans-latin-400-normal.woff" with { type: "file" };
import latinBold from "@fontsource/noto-sans/files/noto-sans-latin-600-normal.woff" with { type: "file" };
import latinExt from "@fontsource/noto-sans/files/noto-sans-latin-ext-400-normal.woff" with { type: "file" };
import vietnamese from "@fontsource/noto-sans/files/noto-sans-vietnamese-400-normal.woff" with { type: "file" };
import arabic from "@fontsource/noto-sans-arabic/files/noto-sans-arabic-arabic-400-normal.woff" with { type: "file" };
import hebrew from "@fontsource/noto-sans-hebrew/files/noto-sans-hebrew-hebrew-400-normal.woff" with { type: "file" };
import thai from "@fontsource/noto-sans-thai/files/noto-sans-thai-thai-400-normal.woff" with { type: "file" };
import { create } from "fontkit";
import { assert } from "../../base/assert.ts";

/** A font of which a document embeds the signs that it uses. */
export interface Face {
	readonly name: string;
	readonly bytes: Buffer;
	has(codePoint: number): boolean;
}

export interface Faces {
	readonly plain: Face;
	readonly bold: Face;
	/** The first one that has all signs of the text; undefined if none has. */
	of(text: string, preferred: Face): Face | undefined;
}

/** Looked into in this order. */
const FILES = {
	latin,
	latinExt,
	greek,
	cyrillic,
	vietnamese,
	greekExt,
	cyrillicExt,
	arabic,
	hebrew,
	thai,
	devanagari,
};
/** Say how signs are joined, and are no signs themselves. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}]/u;

/** `own`: the operator's font, for what ours lack. Fonts are read when they are needed first. */
export function createFaces(own: { readonly path: string; readonly bytes: Buffer } | null): Faces {
	const opened = new Map<string, Face>();
	const open = (name: string, read: () => Buffer): Face => {
		const face = opened.get(name) ?? openFace(name, read());
		opened.set(name, face);
		return face;
	};
	const all: readonly (() => Face)[] = [
		...Object.entries(FILES).map(
			([name, path]) =>
				() =>
					open(name, () => readFileSync(path)),
		),
		...(own === null ? [] : [() => open("own", () => own.bytes)]),
	];
	return {
		get plain() {
			return open("latin", () => readFileSync(latin));
		},
		get bold() {
			return open("bold", () => readFileSync(latinBold));
		},
		of(text, preferred) {
			const signs = [...text].filter((sign) => !INVISIBLE.test(sign)).map((sign) => sign.codePointAt(0) ?? 0);
			const hasAll = (face: Face) => signs.every((sign) => face.has(sign));
			if (hasAll(preferred)) return preferred;
			for (const face of all) if (hasAll(face())) return face();
			return undefined;
		},
	};
}

function openFace(name: string, bytes: Buffer): Face {
	const font = create(bytes);
	assert("hasGlyphForCodePoint" in font, `${name} is one font`);
	const known = new Map<number, boolean>();
	return {
		name,
		bytes,
		has(codePoint) {
			const has = known.get(codePoint) ?? font.hasGlyphForCodePoint(codePoint);
			known.set(codePoint, has);
			return has;
		},
	};
}
