/**
 * Streams as real servers send them, a file for each server in `recordings/`, written for this project after what the server
 * documents or is known to do. The texts are our own; the recording is the shape: fields, events, order, end.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
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

export interface Said {
	readonly choices: readonly SaidChoice[];
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
	readonly directly: Partial<Omit<SaidChoice, "reasoning">> &
		Partial<Said> & { readonly reasoning?: string | undefined };
	/** The kind of failure that it ends in, after what it says; undefined for a proper end. */
	readonly fails: string | undefined;
}

interface ServerFile {
	readonly server: string;
	readonly dialect: DialectName;
	readonly about: string;
	/** Fields that begin each event with choices. */
	readonly head: Json;
	readonly recordings: readonly StreamOfFile[];
}

interface StreamOfFile {
	readonly name: string;
	/** An event behind the head; `event` for one without it; text for lines that are no JSON: comments, other fields. */
	readonly lines: readonly (Json | string)[];
	readonly says: Meant | Said;
	readonly endpoint?: "chat" | "completions";
	readonly n?: number;
	readonly done?: boolean;
	readonly eol?: "\n" | "\r\n" | "\r";
	/** Between `data:` and the payload. */
	readonly space?: "" | " ";
	/** Null: a reader of the server itself gets no reasoning. */
	readonly directly?: Omit<Recording["directly"], "reasoning"> & { readonly reasoning?: string | null };
	readonly fails?: string;
}

type Meant = Omit<SaidChoice, "text"> & {
	readonly text?: string;
	readonly usage?: Said["usage"];
	readonly sources?: readonly string[];
};

const FOLDER = join(import.meta.dir, "recordings");

export const RECORDINGS: readonly Recording[] = [...new Bun.Glob("*.json").scanSync(FOLDER)]
	.sort()
	.map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as ServerFile)
	.flatMap((file) => file.recordings.map((stream) => recordingOf(file, stream)));

function recordingOf({ server, dialect, head }: ServerFile, stream: StreamOfFile): Recording {
	const { endpoint = "chat", n = 1, done = true, eol = "\n", space = " ", fails } = stream;
	const { reasoning, ...others } = stream.directly ?? {};
	const directly = reasoning === undefined ? others : { ...others, reasoning: reasoning ?? undefined };
	const jsonOf = (line: Json) => JSON.stringify("choices" in line ? { ...head, ...line } : line.event);
	const events = stream.lines.map((line) =>
		typeof line === "string" ? `${line.replaceAll("\n", eol)}${eol}${eol}` : `data:${space}${jsonOf(line)}${eol}${eol}`,
	);
	const text = events.join("") + (done ? `data:${space}[DONE]${eol}${eol}` : "");
	const bytes = new TextEncoder().encode(text);
	return { name: `${server}: ${stream.name}`, dialect, endpoint, n, bytes, says: saidOf(stream.says), directly, fails };
}

function saidOf(means: Meant | Said): Said {
	if ("choices" in means) return means;
	const { usage = null, sources, text = "", ...choice } = means;
	return { choices: [{ text, ...choice }], usage, ...(sources === undefined ? {} : { sources }) };
}
