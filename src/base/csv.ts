type Rows = readonly (readonly (string | number | boolean | null)[])[];

/**
 * A CSV file that is generated at its reader's pace. Rejects if its first rows fail, while the status can still report
 * it.
 */
export async function csvResponse(
	fileName: string,
	head: readonly string[],
	/** The next rows; undefined at the end. */
	next: () => Promise<Rows | undefined>,
): Promise<Response> {
	const encoder = new TextEncoder();
	let first: Rows | undefined = [head, ...((await next()) ?? [])];
	const stream = new ReadableStream<Uint8Array>({
		async pull(controller) {
			// An error here breaks the connection, so that a partial file is not taken for a whole one.
			const rows = first ?? (await next());
			first = undefined;
			if (rows === undefined) controller.close();
			else controller.enqueue(encoder.encode(rows.map(csvLine).join("")));
		},
	});
	return new Response(stream, {
		headers: {
			"content-type": "text/csv; charset=utf-8",
			"content-disposition": `attachment; filename="${fileName}"`,
		},
	});
}

const NUMBER = /^-?\d+(\.\d+)?$/;
/** Start of a formula, also in full width, after blanks and invisible characters. */
const FORMULA = /^[\s\p{C}]*[=+\-@＝＋－＠]/u;
/** The same after characters that spreadsheets in other languages take for the end of a cell. */
const NEXT_FORMULA = /([;|\t\r\n])(?=[\s\p{C}]*[=+\-@＝＋－＠])/gu;

/** RFC 4180. Text that a spreadsheet would take for a formula gets a leading quote. */
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
