import { CONFIG_TABLE } from "../config.ts";
import type { Command, OptionSpec } from "./command.ts";

/** Columns of the terminal that texts are broken at. */
const WIDTH = 100;

/** `tollgate help`: all commands, then the environment. */
export function formatHelp(commands: readonly Command[]): string {
	const rows: [string, string][] = [
		["serve", "run the service (default)"],
		...commands.map((command): [string, string] => [usageOf(command), command.summary]),
		["help [COMMAND]", "this text, or a command's own"],
		["version", "the version"],
	];
	const variables = CONFIG_TABLE.filter(({ meaning }) => meaning !== "").map((variable): [string, string] => {
		return [variable.name, variable.default === "" ? variable.meaning : `${variable.meaning} [${variable.default}]`];
	});
	return [
		"Usage: tollgate <command> [options]",
		"",
		...columns(rows),
		"",
		"Options of every command:",
		...columns([
			["--json", "print one line of JSON; errors too, on stderr"],
			["--help", "the command's own help"],
		]),
		"",
		"Exit codes: 0 done, 1 failed, 2 wrong usage.",
		"",
		"Environment:",
		...columns(variables),
	].join("\n");
}

export function formatCommandHelp(command: Command): string {
	const options: [string, string][] = Object.entries(command.options).map(([name, spec]) => {
		return [optionText(name, spec), spec.required ? `${spec.help} (required)` : spec.help];
	});
	const common: [string, string] = ["--json", "print one line of JSON"];
	const details = command.details === undefined ? [] : ["", ...wrap(command.details, WIDTH)];
	return [
		`Usage: tollgate ${usageOf(command)}`,
		"",
		`${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`,
		...details,
		"",
		"Options:",
		...columns([...options, common]),
	].join("\n");
}

function usageOf(command: Command): string {
	const required = Object.entries(command.options).filter(([, spec]) => spec.required);
	const optional = Object.keys(command.options).length > required.length;
	const parts = [command.name, ...command.arguments, ...required.map(([name, spec]) => optionText(name, spec))];
	return [...parts, ...(optional ? ["[options]"] : [])].join(" ");
}

function optionText(name: string, spec: OptionSpec): string {
	return spec.value === undefined ? `--${name}` : `--${name} ${spec.value}`;
}

/** Two columns; a text that is too long for the first has a line of its own. */
function columns(rows: readonly (readonly [string, string])[]): string[] {
	const first = Math.min(30, Math.max(...rows.map(([left]) => left.length)));
	return rows.flatMap(([left, right]) => {
		const lines = wrap(right, WIDTH - first - 4);
		const indent = " ".repeat(first + 4);
		if (left.length > first) return [`  ${left}`, ...lines.map((line) => indent + line)];
		return [`  ${left.padEnd(first)}  ${lines[0] ?? ""}`, ...lines.slice(1).map((line) => indent + line)];
	});
}

function wrap(text: string, width: number): string[] {
	const lines: string[] = [];
	for (const word of text.split(" ")) {
		const last = lines.at(-1);
		if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
		else lines[lines.length - 1] = `${last} ${word}`;
	}
	return lines;
}
