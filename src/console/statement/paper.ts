import PDFDocument from "pdfkit";
import type { Language } from "../../base/language.ts";
import { createFaces, type Faces } from "./faces.ts";
import { NOT_DRAWN, textRuns } from "./text-runs.ts";

/** A sheet of A4 after the other, written from top to bottom. Lengths in points (1/72 inch). */
export interface Paper {
	readonly width: number;
	/** From the top of the page. */
	y: number;
	/** Goes on, on a new page if less than `height` is left of this one. True if it is a new page. */
	room(height: number): boolean;
	text(text: string, at: TextPlace): void;
	rule(): void;
	/** The file. Nothing is written behind it. */
	finish(footer: (page: number, pages: number, somethingMissing: boolean) => string): Promise<Uint8Array<ArrayBuffer>>;
}

export interface TextPlace {
	readonly x?: number;
	/** Text that is longer is cut. */
	readonly width?: number;
	readonly size?: number;
	readonly bold?: boolean;
	readonly right?: boolean;
	readonly dim?: boolean;
	/** Opens when it is clicked. */
	readonly url?: string;
}

const MARGIN = 48;
const FOOTER = 36;
const SIZE = 9;
const INK = "#1b1f23";
const DIM = "#586069";
/** Of a line: more than fit on any. */
const CHARS_MAX = 130;
const LINE = "#c8ced3";
/** Signs are joined by the font alone, over the whole stretch. */
const OPTIONS: PDFKit.Mixins.TextOptions = { lineBreak: false, baseline: "alphabetic", features: [] };

export interface PaperInfo {
	readonly title: string;
	readonly author: string;
	readonly language: Language;
}

export function createPaper(own: Parameters<typeof createFaces>[0], info: PaperInfo): Paper {
	const faces: Faces = createFaces(own);
	const doc = newDocument(info);
	const chunks: Buffer[] = [];
	doc.on("data", (chunk: Buffer) => chunks.push(chunk));
	const ended = new Promise<void>((resolve, reject) => {
		doc.on("end", resolve);
		doc.on("error", reject);
	});
	const width = doc.page.width - 2 * MARGIN;
	const known = new Set<string>();
	let somethingMissing = false;

	function use(face: Faces["plain"], size: number): void {
		if (!known.has(face.name)) doc.registerFont(face.name, face.bytes);
		known.add(face.name);
		doc.font(face.name).fontSize(size);
	}
	function measured(text: string, { size = SIZE, bold = false }: TextPlace) {
		const runs = textRuns(text, faces, bold ? faces.bold : faces.plain).map((run) => {
			use(run.face, size);
			return { ...run, width: doc.widthOfString(run.text, OPTIONS) };
		});
		return { runs, total: runs.reduce((sum, run) => sum + run.width, 0) };
	}
	/** By whole signs, with three dots for what is cut off. */
	function fitted(text: string, place: TextPlace, most: number) {
		const signs = [...text].slice(0, CHARS_MAX);
		if (signs.length < CHARS_MAX) {
			const whole = measured(text, place);
			if (whole.total <= most) return whole;
		}
		let [fits, over] = [0, signs.length];
		while (over - fits > 1) {
			const middle = (fits + over) >> 1;
			if (measured(`${signs.slice(0, middle).join("")}…`, place).total <= most) fits = middle;
			else over = middle;
		}
		return measured(`${signs.slice(0, fits).join("")}…`, place);
	}

	const paper: Paper = {
		width,
		y: MARGIN,
		room(height) {
			if (paper.y + height <= doc.page.height - MARGIN - FOOTER) return false;
			doc.addPage();
			paper.y = MARGIN;
			return true;
		},
		text(text, place) {
			const { x = 0, size = SIZE } = place;
			const most = place.width ?? width - x;
			// What ends a line elsewhere is a blank here.
			const { runs, total } = fitted(text.replace(/[\p{Cc}\u2028\u2029]/gu, " "), place, most);
			let at = MARGIN + x + (place.right ? most - total : 0);
			if (place.url !== undefined) doc.link(at, paper.y - 2, total, size + 5, place.url);
			for (const run of runs) {
				use(run.face, size);
				doc.fillColor(place.dim ? DIM : INK).text(run.text, at, paper.y + size, OPTIONS);
				at += run.width;
				somethingMissing ||= run.text.includes(NOT_DRAWN);
			}
		},
		rule() {
			doc
				.moveTo(MARGIN, paper.y)
				.lineTo(MARGIN + width, paper.y)
				.lineWidth(0.5)
				.strokeColor(LINE)
				.stroke();
		},
		async finish(footer) {
			const { count } = doc.bufferedPageRange();
			for (let page = 0; page < count; page++) {
				doc.switchToPage(page);
				paper.y = doc.page.height - MARGIN - 8;
				paper.text(footer(page + 1, count, somethingMissing), { size: 7, dim: true });
			}
			doc.end();
			await ended;
			return new Uint8Array(Buffer.concat(chunks));
		},
	};
	return paper;
}

function newDocument(info: PaperInfo): PDFKit.PDFDocument {
	return new PDFDocument({
		size: "A4",
		margin: 0,
		bufferPages: true,
		// Else one is read from a file that is not in the binary.
		font: "",
		info: { Title: info.title, Author: info.author },
		lang: info.language,
	});
}
