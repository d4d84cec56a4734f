type Rows = readonly (readonly (string | number | boolean | null)[])[];

/**
 * Streams a CSV file as fast as its reader takes it. Rejects if the first rows cannot be read, so that the response can
 * still have an error status.
 */
export async function csvResponse(
	fileName: string,
	head: readonly string[],
	/** Returns the next rows; undefined at the end. */
	next: () => Promise<Rows | undefined>,
): Promise<Response> {
	const encoder = new TextEncoder();
	let first: Rows | undefined = [head, ...((await next()) ?? [])];
	const stream = new ReadableStream<Uint8Array>({
		async pull(controller) {
			// An error here aborts the connection, so that a partial file does not look complete.
			const rows = first ?? (await next());
			first = undefined;
			if (rows === undefined) controller.close();
			else controller.enqueue(encoder.encode(rows.map(csvLine).join("")));
		},
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
