import { CounterMap } from "./counter-map.ts";
import { errorRecord, errorTextWithoutQuery } from "./error-record.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
	debug(message: string, fields?: LogFields): void;
	info(message: string, fields?: LogFields): void;
	warn(message: string, fields?: LogFields): void;
	error(message: string, fields?: LogFields): void;
	/** Returns a log that adds `fields` to each line. */
	with(fields: LogFields): Log;
	/** True if lines of this level are written. For callers that compute costly fields only then. */
	isOn(level: LogLevel): boolean;
}

export type LogSwitch = ReturnType<typeof createLogSwitch>;

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const satisfies readonly LogLevel[];

/** Minimum level of the lines that are written, which can change while the process runs. */
export function createLogSwitch(configured: LogLevel) {
	let level = configured;
	return {
		level: () => level,
		/** Switches level `debug` on, or off again. Returns the new level. */
		toggleDebug() {
			level = level === "debug" ? configured : "debug";
			return level;
		},
		set(next: LogLevel) {
			level = next;
		},
	};
}

const RANK: Record<LogLevel, number> = { debug: 10, info: 20, warn: 30, error: 40 };

/** Pattern of field names whose values are never logged. */
const SECRET_FIELD =
	/^(authorization|x-api-key|cookie|set-cookie|stripe-signature|api_?key|secret|password|pepper|body|prompt|messages)$/i;

/** Pattern of texts that look like an API key of this service or of a model server. */
const SECRET_TEXT = /\b(sk[_-][A-Za-z0-9_-]{6})[A-Za-z0-9_-]{10,}/g;

/** Lines per minute of a message, and of a message about one account. Further lines are counted; level debug has all. */
const MESSAGE_LINES_MAX = 100;
const ACCOUNT_LINES_MAX = 10;
const MINUTE_MS = 60_000;

/** Limits lines that a caller can cause at will. `say` gets the number of lines that a past minute left out. */
function createLineLimit(say: (message: string, fields: LogFields) => void) {
	let minute = -1;
	let written = new CounterMap();
	let leftOut = new Map<string, number>();

	/** Counts a line. Returns false if it is left out. */
	return (nowMs: number, message: string, account: unknown): boolean => {
		const now = Math.floor(nowMs / MINUTE_MS);
		if (now !== minute) {
			const past = leftOut;
			minute = now;
			written = new CounterMap();
			leftOut = new Map();
			for (const [of, lines] of past) say("similar lines of the log were left out", { of, lines });
		}
		const own = `${message} ${account}`;
		const isFull = written.of(message) >= MESSAGE_LINES_MAX;
		if (isFull || (account !== undefined && written.of(own) >= ACCOUNT_LINES_MAX)) {
			leftOut.set(message, (leftOut.get(message) ?? 0) + 1);
			return false;
		}
		written.add(message, 1);
		written.add(own, 1);
		return true;
	};
}

/** Creates a log that writes one line of JSON per event. */
export function createLog(options: {
	readonly level: LogLevel | (() => LogLevel);
	/** Writes a line, which is passed without a newline. */
	readonly write: (line: string) => void;
	/** Set if the output is a terminal, which gets readable lines instead of JSON. */
	readonly terminal?: { readonly colour: boolean };
	readonly nowMs?: () => number;
}): Log {
	const nowMs = options.nowMs ?? Date.now;
	const { level: given } = options;
	const least = typeof given === "function" ? given : () => given;
	const isOn = (level: LogLevel) => RANK[level] >= RANK[least()];
	const make = (bound: LogFields): Log => {
		const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
			if (!isOn(level)) return;
			const now = nowMs();
			if (!isOn("debug") && !isWithinLimit(now, message, fields?.account)) return;
			const own = { time: new Date(now).toISOString(), level, message };
			// `own` is spread twice, so that its fields come first and no other field replaces them.
			const record = { ...own, ...bound, ...fields, ...own };
			const line = lineOf(record);
			options.write(
				options.terminal === undefined ? line : terminalLine(JSON.parse(line) as LogRecord, options.terminal),
			);
		};
		return {
			debug: at("debug"),
			info: at("info"),
			warn: at("warn"),
			error: at("error"),
			with: (fields) => make({ ...bound, ...fields }),
			isOn,
		};
	};
	const root = make({});
	const isWithinLimit = createLineLimit(root.warn);
	return root;
}

/** Writes nothing; for components without a log, and for tests. */
export const silentLog: Log = createLog({ level: "error", write: () => {} });

/** Serializes a line. Leaves out fields that JSON cannot represent, because logging must not end the process. */
function lineOf(record: { time: string; level: LogLevel; message: string }): string {
	try {
		return JSON.stringify(record, redact);
	} catch {
		const { time, level, message } = record;
		return JSON.stringify({ time, level, message, fields: "not JSON" }, redact);
	}
}

function redact(name: string, value: unknown): unknown {
	if (SECRET_FIELD.test(name) && value !== undefined) return "[redacted]";
	if (typeof value === "bigint") return value.toString();
	if (value instanceof Error) return errorRecord(value);
	return typeof value === "string" ? errorTextWithoutQuery(value).replace(SECRET_TEXT, "$1…") : value;
}

/** Record of a log line, which a terminal shows as time, level, message and `name=value` pairs. */

interface LogRecord {
	readonly time: string;
	readonly level: string;
	readonly message: string;
	readonly [field: string]: unknown;
}

const BOLD: Readonly<Record<string, string>> = { warn: "\x1b[33m", error: "\x1b[31m" };
const END = "\x1b[0m";
const LEVEL_CHARS = "error".length;
/** Characters that a terminal could interpret as a command or as the end of the line. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Formats a record as one line for a terminal, with local time. `record` must be plain data without secrets. */
function terminalLine({ time, level, message, ...fields }: LogRecord, options: { colour: boolean }): string {
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

/** Message and first position of an error. The whole stack is only in the JSON log. */
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
