import bidiFactory from "bidi-js";
import type { Face, Faces } from "./faces.ts";

/** A stretch of text in one font and one direction, as it stands on the line from left to right. */
export interface TextRun {
	readonly text: string;
	readonly face: Face;
}

/** Stands for a sign that no font has. */
export const NOT_DRAWN = "\uFFFD";

/** What every font of ours has, written from left to right. */
const PLAIN = /^[\x20-\x7e]*$/;

const FROM_RIGHT = /[\p{Script=Arabic}\p{Script=Hebrew}]/u;

const bidi = bidiFactory();
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

interface Placed extends TextRun {
	readonly level: number;
}

/**
 * One line of text as it is drawn: in the order of the Unicode Bidirectional Algorithm, each stretch in a font that has its
 * signs. Which way a stretch of letters is written and how they are joined is the font's to know.
 */
export function textRuns(text: string, faces: Faces, preferred: Face): TextRun[] {
	if (PLAIN.test(text)) return [{ text, face: preferred }];
	const { levels } = bidi.getEmbeddingLevels(text);
	const placed: Placed[] = [];
	for (const { segment, index } of graphemes.segment(text)) {
		const level = levels[index] ?? 0;
		const last = placed.at(-1);
		// Blanks stay in the font around them.
		const found = faces.of(segment, last?.face ?? preferred);
		const face = found === last?.face ? found : faces.of(segment, preferred);
		const one = { text: face === undefined ? NOT_DRAWN : mirrored(segment, level), face: face ?? preferred, level };
		if (last !== undefined && last.level === level && last.face === one.face)
			placed[placed.length - 1] = { ...last, text: last.text + one.text };
		else placed.push(one);
	}
	return inVisualOrder(placed).map(({ text: run, face, level }) => ({
		// Letters from right to left are turned around by their font, what has none of them is not.
		text: level % 2 === 1 && !FROM_RIGHT.test(run) ? [...run].reverse().join("") : run,
		face,
	}));
}

/** Brackets open the other way. */
function mirrored(segment: string, level: number): string {
	return level % 2 === 1 && segment.length === 1 ? (bidi.getMirroredCharacter(segment) ?? segment) : segment;
}

/** UAX 9, rule L2: from the highest level down to the lowest odd one, what stands at it or above is turned around. */
function inVisualOrder(runs: Placed[]): Placed[] {
	const highest = Math.max(0, ...runs.map(({ level }) => level));
	const ordered = [...runs];
	for (let level = highest; level > 0; level--) {
		for (let from = 0; from < ordered.length; from++) {
			if ((ordered[from]?.level ?? 0) < level) continue;
			let to = from;
			while ((ordered[to]?.level ?? 0) >= level) to++;
			ordered.splice(from, to - from, ...ordered.slice(from, to).reverse());
			from = to;
		}
	}
	return ordered;
}
