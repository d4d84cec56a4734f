import { mapInTurns } from "./time-slice.ts";

type Rows = readonly (readonly (string | number | boolean | null)[])[];

/** Lets the CSV files that are created at the same time take turns. */
export interface CsvTurns {
	/** Registers an open file, which `end` breaks off. Returns an idempotent function that frees its place. */
	open(end: (why: Error) => void): () => void;
	/** Reads and formats the next rows, possibly after waiting. A slow reader holds no turn. */
	run<Part>(work: () => Promise<Part>): Promise<Part>;
}

const AT_ONCE: CsvTurns = { open: () => () => {}, run: (work) => work() };

/**
 * Streams a CSV file as fast as its reader takes it. Rejects if the first rows cannot be read, so that the response can
 * still have an error status.
 */
export async function csvResponse(
	fileName: string,
	head: readonly string[],
	/** Returns the next rows; undefined at the end. */
	next: () => Promise<Rows | undefined>,
	turns: CsvTurns = AT_ONCE,
): Promise<Response> {
	const encoder = new TextEncoder();
	let first: Rows | undefined = [head, ...((await next()) ?? [])];
	async function nextBytes(): Promise<Uint8Array | undefined> {
		const rows = first ?? (await next());
		first = undefined;
		return rows && encoder.encode((await mapInTurns(rows, csvLine)).join(""));
	}
	let leave = () => {};
	const stream = new ReadableStream<Uint8Array>({
		start(controller) {
			leave = turns.open((why) => controller.error(why));
		},
		async pull(controller) {
			try {
				const bytes = await turns.run(nextBytes);
				if (bytes !== undefined) return controller.enqueue(bytes);
				leave();
				controller.close();
			} catch (error) {
				leave();
				// Aborts the connection, so that a partial file does not look complete.
				throw error;
			}
		},
		cancel: () => leave(),
	});
	return new Response(stream, {
		headers: { "content-type": "text/csv; charset=utf-8", "content-disposition": `attachment; filename="${fileName}"` },
	});
}

const NUMBER = /^-?\d+(\.\d+)?$/;
/** Start of a formula in a spreadsheet. It may follow blanks and invisible characters, and may be in full width. */
const FORMULA = /^[\s\p{C}]*[=+\-@＝＋－＠]/u;
/** Start of a formula after a character that some spreadsheets take for the end of a cell. */
const NEXT_FORMULA = /([;|\t\r\n])(?=[\s\p{C}]*[=+\-@＝＋－＠])/gu;

/** A line of CSV by RFC 4180. An apostrophe is put before a text that spreadsheets would execute as a formula. */
export function csvLine(values: readonly (string | number | boolean | null)[]): string {
	return `${values.map(cell).join(",")}\r\n`;
}

function cell(value: string | number | boolean | null): string {
	if (value === null) return "";
	if (typeof value !== "string") return String(value);
	const quoted = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
	const text = quoted.replace(NEXT_FORMULA, "$1'");
	return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
