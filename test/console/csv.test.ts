import { expect, test } from "bun:test";
import { csvLine, csvResponse } from "../../src/base/csv.ts";
import { CSV_FILE_MS_MAX, CSV_FILES_MAX, CSV_TURNS, createConsoleLimiter } from "../../src/console/console-limiter.ts";
import { createManualClock } from "../support/upstream-clock.ts";

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

test("CSV files of many accounts are read a few rows at once, one file of an account at a time", async () => {
	const limiter = createConsoleLimiter({ clock: createManualClock() });
	const reading: string[] = [];
	let most = 0;
	let twice = 0;
	const open = async (owner: string) => {
		let left = 4;
		const next = async () => {
			left -= 1;
			// The first rows are read before the response, within the limit of pages.
			if (left === 3) return [["first"]];
			if (reading.includes(owner)) twice += 1;
			reading.push(owner);
			most = Math.max(most, reading.length);
			await Bun.sleep(1);
			reading.splice(reading.indexOf(owner), 1);
			return left > 0 ? [[owner]] : undefined;
		};
		return csvResponse("a.csv", ["n"], next, limiter.csvTurns(owner));
	};
	const owners = Array.from({ length: 24 }, (_, nth) => `account ${nth % 8}`);
	// A client that reads nothing delays no other.
	const unread = await Promise.all(owners.map(open));
	const texts = await Promise.all(owners.map(async (owner) => (await open(owner)).text()));
	expect(texts).toEqual(owners.map((owner) => `n\r\nfirst\r\n${`${owner}\r\n`.repeat(2)}`));
	expect({ most, twice }).toEqual({ most: CSV_TURNS.places, twice: 0 });
	await Promise.all(unread.map((response) => response.body?.cancel()));
});

test("an account opens a limited number of CSV files, each for a limited time", async () => {
	const clock = createManualClock();
	const limiter = createConsoleLimiter({ clock });
	const open = (owner: string) => csvResponse("a.csv", ["n"], async () => [[1]], limiter.csvTurns(owner));
	const files: Response[] = [];
	for (let nth = 0; nth < CSV_FILES_MAX / 8; nth += 1) files.push(await open("a"));
	await expect(open("a")).rejects.toThrow("too many requests of this kind");
	await files[0]?.body?.cancel();
	await open("a");
	clock.advance(CSV_FILE_MS_MAX);
	await expect(files[1]?.text()).rejects.toThrow("busy");
	for (let nth = 0; nth < CSV_FILES_MAX / 8; nth += 1) await open("a");
});
