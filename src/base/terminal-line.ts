/** A record of the log for a person at a terminal: one line, `12:34:56 warn  what happened  name=value`. */

export interface LogRecord {
	readonly time: string;
	readonly level: string;
	readonly message: string;
	readonly [field: string]: unknown;
}

const BOLD: Readonly<Record<string, string>> = { warn: "\x1b[33m", error: "\x1b[31m" };
const END = "\x1b[0m";
const LEVEL_CHARS = "error".length;
/** What a terminal might take for an order, or for the end of the line. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** `record` is plain data: secrets are taken out before. Time is this machine's own. */
export function terminalLine({ time, level, message, ...fields }: LogRecord, options: { colour: boolean }): string {
	const word = level.padEnd(LEVEL_CHARS);
	const colour = options.colour ? BOLD[level] : undefined;
	const head = `${new Date(time).toTimeString().slice(0, 8)} ${colour ? `${colour}${word}${END}` : word} ${shown(message)}`;
	const rest = Object.entries(fields).map(([name, value]) => `${shown(name)}=${valueText(value)}`);
	return [head, ...rest].join("  ");
}

function valueText(value: unknown): string {
	if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? shown(value) : shown(JSON.stringify(value));
	return isError(value) ? errorText(value) : shown(JSON.stringify(value) ?? "");
}

function isError(value: unknown): value is { name: string; message: string; detail?: unknown; stack?: unknown } {
	return typeof value === "object" && value !== null && "name" in value && "message" in value && "stack" in value;
}

/** What it says and where it came from; the whole stack is in the log that is read by programs. */
function errorText({ message, detail, stack }: { message: string; detail?: unknown; stack?: unknown }): string {
	const said = typeof detail === "string" ? `${message} (${detail})` : message;
	const place = /^\s+at .*?([^\s(/]+\/[^\s(/]+:\d+):\d+\)?$/m.exec(String(stack))?.[1];
	return shown(`${JSON.stringify(said)}${place === undefined ? "" : ` at ${place}`}`);
}

function shown(text: string): string {
	return text.replace(
		NOT_SHOWN,
		(character) => `\\u${(character.codePointAt(0) as number).toString(16).padStart(4, "0")}`,
	);
}
