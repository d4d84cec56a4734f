import { expect, test } from "bun:test";
import { formatTable } from "../../src/cli/table.ts";

test("a printed table aligns columns that contain wide characters", () => {
	const lines = formatTable(
		["NAME", "STATE"],
		[
			["東京", "active"],
			["a", "suspended"],
		],
	).split("\n");
	expect(lines).toEqual(["NAME  STATE", "東京  active", "a     suspended"]);
});

test("a printed table shows no control characters of a customer's name", () => {
	const table = formatTable(["NAME"], [["\u001b[2Jgone"], ["one\r\ntwo"], ["\u009b31mred"], ["\u202eright to left"]]);
	expect(table.split("\n")).toEqual([
		"NAME",
		"\ufffd[2Jgone",
		"one\ufffd\ufffdtwo",
		"\ufffd31mred",
		"\ufffdright to left",
	]);
});
