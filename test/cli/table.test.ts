import { expect, test } from "bun:test";
import { formatTable } from "../../src/cli/table.ts";

test("columns stand under each other, also beside characters of two cells", () => {
	const lines = formatTable(
		["NAME", "STATE"],
		[
			["東京", "active"],
			["a", "suspended"],
		],
	).split("\n");
	expect(lines).toEqual(["NAME  STATE", "東京  active", "a     suspended"]);
});

test("a customer's name cannot write to the operator's terminal", () => {
	const table = formatTable(["NAME"], [["\u001b[2Jgone"], ["one\r\ntwo"], ["\u009b31mred"], ["\u202eright to left"]]);
	expect(table.split("\n")).toEqual([
		"NAME",
		"\ufffd[2Jgone",
		"one\ufffd\ufffdtwo",
		"\ufffd31mred",
		"\ufffdright to left",
	]);
});
