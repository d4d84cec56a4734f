import { expect, test } from "bun:test";
import { csvLine, csvResponse } from "../../src/base/csv.ts";

/** Returns the cells of a line that a spreadsheet could treat as a formula, without leading spaces. */
function cells(line: string): string[] {
	const value = line
		.replace(/\r\n$/, "")
		.replace(/^"([\s\S]*)"$/, "$1")
		.replaceAll('""', '"');
	return value.split(/[;|\t\r\n]/).map((cell) => cell.replace(/^[\s\p{C}]+/u, "").normalize("NFKC"));
}

test("a value in a CSV file never starts a formula, however disguised", () => {
	const fronts = [
		"",
		" ",
		"\t",
		"\u00a0",
		"\ufeff",
		"\u200b",
		"\u202e",
		"\u3000",
		"\r",
		"\n",
		"\r\n ",
		"a;",
		"a; ",
		"a\t",
		"a|",
		"a\n",
		'";',
		"\0",
	];
	const signs = ["=", "+", "-", "@", "＝", "＋", "－", "＠"];
	for (const front of fronts)
		for (const sign of signs)
			for (const rest of ["cmd|' /C calc'!A0", "1+1", "SUM(A1)", '"x"', ""]) {
				const value = `${front}${sign}${rest}`;
				const begins = cells(csvLine([value])).filter((cell) => /^[=+\-@]/.test(cell));
				expect([value, begins]).toEqual([value, []]);
			}
});

test("a CSV file keeps numbers, names and texts as they are", () => {
	expect(csvLine(["-1", "-1.50", "12", "a-b", "ada@example.com", "x = y", "gpt-4; fast", 3, true, null])).toBe(
		'-1,-1.50,12,a-b,ada@example.com,x = y,"gpt-4; fast",3,true,\r\n',
	);
});

test("a CSV download fails if its first read fails, and breaks off at a later failure", async () => {
	const rows = (fails: number) => {
		let asked = 0;
		return csvResponse("a.csv", ["n"], async () => {
			asked += 1;
			if (asked === fails) throw new Error("no rows");
			return asked > 2 ? undefined : [[asked]];
		});
	};
	await expect(rows(1)).rejects.toThrow("no rows");
	expect(await (await rows(0)).text()).toBe("n\r\n1\r\n2\r\n");
	await expect((await rows(2)).text()).rejects.toThrow("no rows");
	expect(await (await csvResponse("a.csv", ["n"], async () => undefined)).text()).toBe("n\r\n");
});
