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

describe("a command line", () => {
	test("gives a command its options and arguments as they were written", () => {
		const input = inputOf("p1", "--to", "-5", "--by-air", "by hand", "--json");
		expect([input.argument(0), input.optionalArgument(1), input.required("to")]).toEqual(["p1", "by hand", "-5"]);
		expect([input.flag("by-air"), input.flag("no-wait")]).toEqual([true, false]);
		const other = inputOf("p2", "--to=--there", "--no-wait");
		expect([other.optionalArgument(1), other.flag("by-air"), other.flag("no-wait")]).toEqual([undefined, false, true]);
	});

	test("an option or argument that the table does not have is the caller's own mistake", () => {
		const input = inputOf("p1", "--to", "there");
		expect(() => input.option("form")).toThrow();
		expect(() => input.argument(1)).toThrow();
	});

	test.each(["", " "])(
		"no option and no argument is empty (%p): that is what a variable leaves that was never set",
		(text) => {
			expect(complaintOf("parcel", "send", "p1", "--to", text)).toContain("--to");
			expect(complaintOf("parcel", "send", "p1", `--to=${text}`)).toContain("empty");
			expect(complaintOf("parcel", "send", text, "--to", "there")).toContain("empty");
			expect(complaintOf("parcel", "send", "p1", text, "--to", "there")).toContain("empty");
		},
	);

	test("what is missing, too much or misspelt is said", () => {
		expect(complaintOf("parcel", "send", "p1")).toContain("--to");
		expect(complaintOf("parcel", "send", "--to", "there")).toContain("ID");
		expect(complaintOf("parcel", "send", "p1", "note", "more", "--to", "there")).toContain("more");
		expect(complaintOf("parcel", "send", "p1", "--to", "there", "--no-wiat")).toContain("--no-wait");
		expect(complaintOf("parcel")).toContain("takes one of: send");
		expect(complaintOf("parcel", "sned", "p1")).toContain("send");
		expect(complaintOf("serve", "--port", "1")).toContain("--port");
		expect(complaintOf("serve", "now")).toContain("serve");
	});

	test("an option in a value's place is a value that was forgotten", () => {
		expect(complaintOf("parcel", "send", "p1", "--to", "--json")).toContain("--to");
	});

	test("help is for what exists, before or behind its words, and for nothing at all", () => {
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

	test("the version, by word and by option", () => {
		expect([read("version"), read("--version")]).toEqual([{ kind: "version" }, { kind: "version" }]);
	});
});

test("every command of ours has its help, with each of its options", () => {
	for (const command of COMMANDS) {
		const asked = readCommandLine(COMMANDS, "1.2.3", ["help", ...command.name.split(" ")]);
		if (asked.kind !== "help") throw new Error(command.name);
		expect(asked.text).toStartWith(`Usage: tollgate ${command.name}`);
		for (const name of Object.keys(command.options)) expect(asked.text).toContain(`--${name}`);
	}
});
