import { describe, expect, test } from "bun:test";
import { type Command, UsageError } from "../../src/cli/command.ts";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { COMMANDS } from "../../src/cli/commands.ts";

const send: Command = {
	name: "parcel send",
	summary: "send a parcel",
	arguments: ["ID", "[NOTE]"],
	options: {
		to: { value: "PLACE", required: true, help: "where it goes" },
		"by-air": { help: "faster" },
		"no-wait": { help: "do not wait for it" },
	},
	run: async () => ({ json: null, text: "" }),
};

const read = (...argv: string[]) => readCommandLine([send], "1.2.3", argv);
function inputOf(...argv: string[]) {
	const asked = read("parcel", "send", ...argv);
	if (asked.kind !== "command") throw new Error(`not a command: ${asked.kind}`);
	return asked.input;
}
const complaintOf = (...argv: string[]) => {
	try {
		read(...argv);
	} catch (error) {
		if (error instanceof UsageError) return error.message;
		throw error;
	}
	return undefined;
};

describe("the parser of the command line", () => {
	test("passes options and arguments to the command unchanged", () => {
		const input = inputOf("p1", "--to", "-5", "--by-air", "by hand", "--json");
		expect([input.argument(0), input.optionalArgument(1), input.required("to")]).toEqual(["p1", "by hand", "-5"]);
		expect([input.flag("by-air"), input.flag("no-wait")]).toEqual([true, false]);
		const other = inputOf("p2", "--to=--there", "--no-wait");
		expect([other.optionalArgument(1), other.flag("by-air"), other.flag("no-wait")]).toEqual([undefined, false, true]);
	});

	test("throws if a command reads an option or argument that it does not declare", () => {
		const input = inputOf("p1", "--to", "there");
		expect(() => input.option("form")).toThrow();
		expect(() => input.argument(1)).toThrow();
	});

	test.each(["", " "])("refuses an empty option or argument (%p), as an unset shell variable gives", (text) => {
		expect(complaintOf("parcel", "send", "p1", "--to", text)).toContain("--to");
		expect(complaintOf("parcel", "send", "p1", `--to=${text}`)).toContain("empty");
		expect(complaintOf("parcel", "send", text, "--to", "there")).toContain("empty");
		expect(complaintOf("parcel", "send", "p1", text, "--to", "there")).toContain("empty");
	});

	test("names a missing, surplus or misspelt argument", () => {
		expect(complaintOf("parcel", "send", "p1")).toContain("--to");
		expect(complaintOf("parcel", "send", "--to", "there")).toContain("ID");
		expect(complaintOf("parcel", "send", "p1", "note", "more", "--to", "there")).toContain("more");
		expect(complaintOf("parcel", "send", "p1", "--to", "there", "--no-wiat")).toContain("--no-wait");
		expect(complaintOf("parcel")).toContain("takes one of: send");
		expect(complaintOf("parcel", "sned", "p1")).toContain("send");
		expect(complaintOf("serve", "--port", "1")).toContain("--port");
		expect(complaintOf("serve", "now")).toContain("serve");
	});

	test("reports a missing value if another option follows directly", () => {
		expect(complaintOf("parcel", "send", "p1", "--to", "--json")).toContain("--to");
	});

	test("shows help for `help key create`, `key create --help` and `--help`", () => {
		for (const argv of [
			["help", "parcel", "send"],
			["parcel", "send", "--help"],
			["parcel", "send", "p1", "-h"],
		])
			expect(read(...argv)).toMatchObject({ kind: "help", text: expect.stringContaining("tollgate parcel send <ID>") });
		for (const argv of [[], ["help"], ["--help"]])
			expect(read(...argv)).toMatchObject({ kind: "help", text: expect.stringContaining("DATABASE_URL") });
		expect(complaintOf("help", "letter")).toContain("letter");
		expect(complaintOf("parcel", "burn", "--help")).toContain("burn");
	});

	test("shows the version for `version` and `--version`", () => {
		expect([read("version"), read("--version")]).toEqual([{ kind: "version" }, { kind: "version" }]);
	});
});

test("the help of each command lists each of its options", () => {
	for (const command of COMMANDS) {
		const asked = readCommandLine(COMMANDS, "1.2.3", ["help", ...command.name.split(" ")]);
		if (asked.kind !== "help") throw new Error(command.name);
		expect(asked.text).toStartWith(`Usage: tollgate ${command.name}`);
		for (const name of Object.keys(command.options)) expect(asked.text).toContain(`--${name}`);
	}
});
