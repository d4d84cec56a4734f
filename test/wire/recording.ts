/**
 * Streams of real servers, one file each in `recordings/`, written for this project after the server's documentation or
 * known behaviour. The texts are our own; fields, events, order and end are the server's.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DialectName, ReasoningCount } from "../../src/catalog/model.ts";

type Json = Record<string, unknown>;

/** One assembled choice of a stream. */
export interface AssembledChoice {
	readonly text: string;
	readonly reasoning?: string;
	readonly refusal?: string;
	/** Tool calls as `name(arguments)`, in order, preceded by the id if the server sent one. */
	readonly tools?: readonly string[];
	readonly finish: string | null;
	/** The joined text of the tokens that have log probabilities. */
	readonly logprobs?: string;
	/** URLs that the text cites, in order. */
	readonly cites?: readonly string[];
	/** Signed data, as JSON, that the client sends back with the next turn. */
	readonly signed?: string;
	/** Transcript of the audio answer. */
	readonly spoken?: string;
}

export interface AssembledMessage {
	readonly choices: readonly AssembledChoice[];
	readonly usage: readonly [prompt: number, completion: number] | null;
	/** URLs of sources that are outside the choices. */
	readonly sources?: readonly string[];
}

export interface Recording {
	readonly name: string;
	readonly dialect: DialectName;
	readonly endpoint: "chat" | "completions";
	/** Number of requested choices. */
	readonly n: number;
	/** How the server is configured to count reasoning tokens. */
	readonly reasoningTokens: ReasoningCount;
	readonly bytes: Uint8Array;
	readonly says: AssembledMessage;
	/** If the service differs on purpose: the message that a client of the server itself assembles. */
	readonly directly: Partial<Omit<AssembledChoice, "reasoning">> &
		Partial<AssembledMessage> & { readonly reasoning?: string | undefined };
	/** Kind of the failure at the end; undefined for a regular end. */
	readonly fails: string | undefined;
}

interface ServerFile {
	readonly server: string;
	readonly dialect: DialectName;
	readonly about: string;
	/** By default the completion tokens include the reasoning tokens. */
	readonly reasoning_tokens?: ReasoningCount;
	/** Fields at the start of each event that has choices. */
	readonly head: Json;
	readonly recordings: readonly StreamOfFile[];
}

interface StreamOfFile {
	readonly name: string;
	/**
	 * An object with `choices` is an event to which `head` is added; `{ event }` is an event without `head`. A string is
	 * a line that is not JSON, such as a comment.
	 */
	readonly lines: readonly (Json | string)[];
	readonly says: Meant | AssembledMessage;
	readonly endpoint?: "chat" | "completions";
	readonly n?: number;
	readonly done?: boolean;
	readonly eol?: "\n" | "\r\n" | "\r";
	/** Characters between `data:` and the payload. */
	readonly space?: "" | " ";
	/** With null, a client that uses the server directly gets no reasoning. */
	readonly directly?: Omit<Recording["directly"], "reasoning"> & { readonly reasoning?: string | null };
	readonly fails?: string;
}

type Meant = Omit<AssembledChoice, "text"> & {
	readonly text?: string;
	readonly usage?: AssembledMessage["usage"];
	readonly sources?: readonly string[];
};

const FOLDER = join(import.meta.dir, "recordings");

export const RECORDINGS: readonly Recording[] = [...new Bun.Glob("*.json").scanSync(FOLDER)]
	.sort()
	.map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as ServerFile)
	.flatMap((file) => file.recordings.map((stream) => recordingOf(file, stream)));

function recordingOf({ server, dialect, head, ...file }: ServerFile, stream: StreamOfFile): Recording {
	const { endpoint = "chat", n = 1, done = true, eol = "\n", space = " ", fails } = stream;
	const { reasoning, ...others } = stream.directly ?? {};
	const directly = reasoning === undefined ? others : { ...others, reasoning: reasoning ?? undefined };
	const jsonOf = (line: Json) => JSON.stringify("choices" in line ? { ...head, ...line } : line.event);
	const events = stream.lines.map((line) =>
		typeof line === "string" ? `${line.replaceAll("\n", eol)}${eol}${eol}` : `data:${space}${jsonOf(line)}${eol}${eol}`,
	);
	const text = events.join("") + (done ? `data:${space}[DONE]${eol}${eol}` : "");
	const bytes = new TextEncoder().encode(text);
	const reasoningTokens = file.reasoning_tokens ?? "inside";
	return {
		name: `${server}: ${stream.name}`,
		dialect,
		endpoint,
		n,
		reasoningTokens,
		bytes,
		says: saidOf(stream.says),
		directly,
		fails,
	};
}

function saidOf(means: Meant | AssembledMessage): AssembledMessage {
	if ("choices" in means) return means;
	const { usage = null, sources, text = "", ...choice } = means;
	return { choices: [{ text, ...choice }], usage, ...(sources === undefined ? {} : { sources }) };
}
