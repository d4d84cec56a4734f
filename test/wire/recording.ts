/**
 * Streams as real servers send them, written out for this project after what each server documents or is known to do.
 * The texts are our own; what is recorded is the shape: which fields, in which events, in which order, with which end.
 */
import type { DialectName } from "../../src/catalog/model.ts";

type Json = Record<string, unknown>;

/** What a reader puts together from one choice of a stream. */
export interface SaidChoice {
	readonly text: string;
	readonly reasoning?: string;
	readonly refusal?: string;
	/** `name(arguments)`, in order; with its id before it if the server gave one. */
	readonly tools?: readonly string[];
	/** Null if it never said. */
	readonly finish: string | null;
	/** The tokens that have a logprob, joined. */
	readonly logprobs?: string;
	/** Addresses that the text cites. */
	readonly cites?: readonly string[];
	/** What goes back with the next turn, as JSON. */
	readonly signed?: string;
	/** Transcript of what was spoken. */
	readonly spoken?: string;
}

/** What a reader puts together from a whole stream. */
export interface Said {
	readonly choices: readonly SaidChoice[];
	/** Prompt and completion tokens; null if there is no count by the server. */
	readonly usage: readonly [prompt: number, completion: number] | null;
	/** Addresses that stand beside the choices. */
	readonly sources?: readonly string[];
}

export interface Recording {
	readonly name: string;
	readonly dialect: DialectName;
	readonly endpoint: "chat" | "completions";
	/** Choices that the request asks for. */
	readonly n: number;
	readonly bytes: Uint8Array;
	readonly says: Said;
	/** Where somebody who reads the server itself puts together something else, and we mean to change it. */
	readonly directly: Partial<SaidChoice> & Partial<Said>;
	/** The kind of failure that it ends in, after what it says; undefined for a proper end. */
	readonly fails: string | undefined;
}

/** An event's JSON, or the text of lines that are no JSON: comments, other fields. */
export type Line = Json | string;

interface Form {
	readonly endpoint?: "chat" | "completions";
	readonly n?: number;
	/** False for servers that just end. */
	readonly done?: boolean;
	readonly eol?: "\n" | "\r\n" | "\r";
	/** What stands between `data:` and the payload. */
	readonly space?: "" | " ";
	readonly directly?: Recording["directly"];
	readonly fails?: string;
}

type Meant = Omit<SaidChoice, "text"> & {
	readonly text?: string;
	readonly usage?: Said["usage"];
	readonly sources?: readonly string[];
};

/** One choice is said as itself, several as a list. */
export function recording(
	server: string,
	dialect: DialectName,
	name: string,
	lines: readonly Line[],
	means: Meant | Said,
	form: Form = {},
): Recording {
	const { endpoint = "chat", n = 1, done = true, eol = "\n", space = " ", directly = {}, fails } = form;
	const events = lines.map((line) =>
		typeof line === "string"
			? `${line.replaceAll("\n", eol)}${eol}${eol}`
			: `data:${space}${JSON.stringify(line)}${eol}${eol}`,
	);
	const text = events.join("") + (done ? `data:${space}[DONE]${eol}${eol}` : "");
	const bytes = new TextEncoder().encode(text);
	return { name: `${server}: ${name}`, dialect, endpoint, n, bytes, says: saidOf(means), directly, fails };
}

function saidOf(means: Meant | Said): Said {
	if ("choices" in means) return means;
	const { usage = null, sources, text = "", ...choice } = means;
	return { choices: [{ text, ...choice }], usage, ...(sources === undefined ? {} : { sources }) };
}

/** Events of one server's making: `more` stands on each. */
export function eventsOf(head: Json, more: Json = {}) {
	const event = (choices: readonly Json[], extra: Json = {}): Json => ({ ...head, choices, ...more, ...extra });
	return {
		event,
		/** An event with one choice. */
		chunk: (delta: Json, finish: string | null = null, extra: Json = {}, ofChoice: Json = {}): Json =>
			event([{ index: 0, delta, ...ofChoice, finish_reason: finish }], extra),
		of: (index: number, delta: Json, finish: string | null = null, extra: Json = {}): Json =>
			event([{ index, delta, finish_reason: finish }], extra),
		/** The final count on an event of its own. */
		count: (prompt: number, completion: number, details: Json = {}, extra: Json = {}): Json =>
			event([], { usage: usage(prompt, completion, details), ...extra }),
	};
}

export function usage(prompt: number, completion: number, details: Json = {}): Json {
	return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, ...details };
}

export function call(
	index: number,
	id: string | undefined,
	name: string | undefined,
	args: string,
	more: Json = {},
): Json {
	return {
		index,
		...(id === undefined ? {} : { id, type: "function" }),
		function: { ...(name === undefined ? {} : { name }), arguments: args },
		...more,
	};
}
