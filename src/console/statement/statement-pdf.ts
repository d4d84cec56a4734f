import { readFileSync } from "node:fs";
import fontFile from "dejavu-fonts-ttf/ttf/DejaVuSansCondensed.ttf" with { type: "file" };
import PDFDocument from "pdfkit";
import { createTimeSlice } from "../../base/time-slice.ts";
import { translateId } from "../../base/translate.ts";
import { ConsoleError } from "../console-error.ts";
import type { DocumentTable, StatementDocument } from "./statement-document.ts";

/** Lengths in points (1/72 inch). */
const MARGIN = 48;
const FOOTER = 36;
const LINE = 13;
const SIZE = 9;
const INK = "#1b1f23";
const DIM = "#586069";
const RULE = "#c8ced3";
const CHARS_MAX = 130;
/** Widths in points of all cells but the last, which gets the remaining width. */
const WIDTHS = [170, 110];
const AMOUNT_WIDTH = 120;

/** Text that the embedded font can draw without shaping. Other scripts need the browser's fonts: the HTML page. */
const DRAWN = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Common}\p{Script=Inherited}]*$/u;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
const LINE_ENDS = /[\p{Cc}\u2028\u2029]/gu;

interface Place {
	readonly x?: number;
	readonly width?: number;
	readonly size?: number;
	readonly right?: boolean;
	readonly dim?: boolean;
	readonly url?: string;
}

let font: Buffer | undefined;

/**
 * Draws the statement, in slices between which other work of the event loop runs. Fault `unprocessable_request` for
 * scripts other than Latin, Greek and Cyrillic.
 */
export async function statementPdf(document: StatementDocument): Promise<Uint8Array<ArrayBuffer>> {
	const { language, title, serviceName, accountId, month, from, to, facts, tables } = document;
	font ??= readFileSync(fontFile);
	const doc = new PDFDocument({
		...{ size: "A4", margin: 0, bufferPages: true, lang: language },
		// An empty name: by default pdfkit reads a font file, which the binary does not contain.
		font: "",
		info: { Title: `${title}, ${accountId}`, Author: serviceName },
	});
	const chunks: Buffer[] = [];
	doc.on("data", (chunk: Buffer) => chunks.push(chunk));
	const ended = new Promise<void>((resolve, reject) => {
		doc.on("end", resolve);
		doc.on("error", reject);
	});
	doc.registerFont("text", font).font("text");
	const face = (doc as unknown as { _font: { font: { hasGlyphForCodePoint(code: number): boolean } } })._font.font;
	const width = doc.page.width - 2 * MARGIN;
	const slice = createTimeSlice();
	let y = MARGIN;

	function text(written: string, { x = 0, width: most = width - x, size = SIZE, right, dim, url }: Place): void {
		const line = written.replace(LINE_ENDS, " ").replace(INVISIBLE, "");
		if (!DRAWN.test(line) || [...line].some((sign) => !face.hasGlyphForCodePoint(sign.codePointAt(0) ?? 0)))
			throw new ConsoleError(
				"unprocessable_request",
				"PDFs support Latin, Greek and Cyrillic only. Print the statement's page instead.",
			);
		const cut = line.length > CHARS_MAX ? `${[...line].slice(0, CHARS_MAX).join("")}…` : line;
		doc
			.fontSize(size)
			.fillColor(dim ? DIM : INK)
			.text(cut, MARGIN + x, y, {
				...{ width: most, height: size, ellipsis: true, features: [] },
				...(right ? { align: "right" } : {}),
				...(url === undefined ? {} : { link: url }),
			});
	}
	function rule(): void {
		doc
			.moveTo(MARGIN, y)
			.lineTo(MARGIN + width, y)
			.lineWidth(0.5)
			.strokeColor(RULE)
			.stroke();
		y += 5;
	}
	function room(height: number): boolean {
		if (y + height <= doc.page.height - MARGIN - FOOTER) return false;
		doc.addPage();
		y = MARGIN;
		return true;
	}
	function head(name: string): void {
		text(name, { size: 10 });
		text("USD", { size: 8, dim: true, right: true });
		y += LINE + 2;
		rule();
	}
	async function table({ title: name, rows, more }: DocumentTable): Promise<void> {
		room(5 * LINE);
		head(name);
		for (const { cells, amount, url } of rows) {
			if (room(LINE)) head(translateId(language, "{title}, continued", { title: name }));
			let x = 0;
			for (const [column, cell] of cells.entries()) {
				const own = column === cells.length - 1 ? width - x - AMOUNT_WIDTH : (WIDTHS[column] ?? 0);
				const link = column === 0 && url !== undefined ? { url } : {};
				text(cell, { x, width: own - 8, dim: column > 0, ...link });
				x += own;
			}
			text(amount, { right: true });
			y += LINE;
			if (slice.isOver()) await slice.next();
		}
		if (more !== null) {
			text(more, { dim: true });
			y += LINE;
		}
		y += 14;
	}

	text(serviceName, { size: 11, width: 240 });
	text(title, { size: 16, x: 240, right: true });
	y += 34;
	const half = width / 2;
	for (let row = 0; row <= Math.max(from.lines.length, to.lines.length); row++) {
		for (const [x, { label, lines }] of [[0, from] as const, [half, to] as const])
			text(row === 0 ? label : (lines[row - 1] ?? ""), { x, width: half - 12, dim: row === 0 });
		y += LINE;
	}
	y += 10;
	for (const [name, value] of facts) {
		text(name, { dim: true, width: 90 });
		text(value, { x: 90 });
		y += LINE;
	}
	y += 12;
	for (const one of tables) await table(one);
	const pages = doc.bufferedPageRange().count;
	for (let page = 1; page <= pages; page++) {
		doc.switchToPage(page - 1);
		y = doc.page.height - MARGIN - 8;
		const at = translateId(language, "page {page} of {pages}", { page, pages });
		text(`${serviceName} · ${accountId} · ${month} · ${at}`, { size: 7, dim: true });
	}
	await slice.next();
	doc.end();
	await ended;
	return new Uint8Array(Buffer.concat(chunks));
}
