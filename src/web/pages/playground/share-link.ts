import { nanoUsd } from "../../../money/nano-usd.ts";
import type { ToolCall } from "../../chat-stream.ts";
import { type AnswerStats, type AnswerTurn, type ChatSetup, FRESH_SETUP, isObject, type Turn } from "./conversation.ts";

/**
 * A conversation in a URL's fragment, which browsers never send to a server. Everybody with the link can read it.
 * Opening it costs nothing: the model is called only when a message is sent.
 */
export interface SharedConversation {
	readonly threads: readonly { readonly model: string; readonly turns: readonly Turn[] }[];
	readonly setup: ChatSetup;
}

const NAME = "#chat=";
/** Longest link in characters: messengers and mail programs cut off longer ones. */
export const LINK_CHARS_MAX = 16_000;
/** Most characters after decompression, which could make a link a thousand times longer. */
const TEXT_CHARS_MAX = 1_000_000;
const THREADS_MAX = 2;
const TURNS_MAX = 1_000;

/** Returns a link; `url` is undefined if it would be too long. Pictures are never included: `leftOut` counts them. */
export async function toShareLink(shared: SharedConversation, page: string) {
	let leftOut = 0;
	const text = JSON.stringify({
		...shared,
		threads: shared.threads.map(({ model, turns }) => ({
			model,
			turns: turns.map((turn) => {
				if (turn.role !== "user") return turn;
				leftOut += turn.pictures.length;
				return { ...turn, pictures: [] };
			}),
		})),
	});
	const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
	const url = page + NAME + base64Url(new Uint8Array(await new Response(packed).arrayBuffer()));
	return { url: url.length > LINK_CHARS_MAX || text.length > TEXT_CHARS_MAX ? undefined : url, leftOut };
}

export const isSharedFragment = (fragment: string): boolean => fragment.startsWith(NAME);

/** Reads the conversation from a URL's fragment; undefined if the fragment contains no valid one. */
export async function readShareLink(fragment: string): Promise<SharedConversation | undefined> {
	if (!isSharedFragment(fragment) || fragment.length > LINK_CHARS_MAX) return undefined;
	try {
		return readShared(JSON.parse(await unpacked(fragment.slice(NAME.length))));
	} catch {
		return undefined;
	}
}

async function unpacked(text: string): Promise<string> {
	const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
	const reader = new Blob([bytes])
		.stream()
		.pipeThrough(new DecompressionStream("deflate-raw"))
		.pipeThrough(new TextDecoderStream())
		.getReader();
	let found = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return found;
		found += value;
		if (found.length > TEXT_CHARS_MAX) {
			await reader.cancel();
			throw new Error("a conversation is not that long");
		}
	}
}

function base64Url(bytes: Uint8Array): string {
	let text = "";
	for (const byte of bytes) text += String.fromCharCode(byte);
	return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Reads only the expected fields and types, because anybody can write a link. */
function readShared(value: unknown): SharedConversation | undefined {
	if (!isObject(value) || !Array.isArray(value.threads)) return undefined;
	const threads = value.threads.slice(0, THREADS_MAX).map((thread: unknown) => {
		const { model, turns } = isObject(thread) ? thread : {};
		const list = Array.isArray(turns) ? turns.slice(0, TURNS_MAX) : [];
		return { model: textOf(model), turns: list.flatMap((turn) => readTurn(turn)) };
	});
	if (threads.length === 0) return undefined;
	const setup = isObject(value.setup) ? value.setup : {};
	const fields = Object.keys(FRESH_SETUP) as (keyof ChatSetup)[];
	return {
		threads,
		setup: Object.fromEntries(fields.map((name) => [name, textOf(setup[name])])) as Record<keyof ChatSetup, string>,
	};
}

function readTurn(turn: unknown): Turn[] {
	if (!isObject(turn)) return [];
	const content = textOf(turn.content);
	if (turn.role === "user") return [{ role: "user", content, pictures: [] }];
	if (turn.role === "tool") return [{ role: "tool", callId: textOf(turn.callId), name: textOf(turn.name), content }];
	if (turn.role === "assistant") return [readAnswer(turn, content)];
	return [];
}

function readAnswer(turn: Readonly<Record<string, unknown>>, content: string): AnswerTurn {
	const calls = Array.isArray(turn.toolCalls) ? turn.toolCalls : [];
	const toolCalls = calls
		.filter(isObject)
		.map(({ id, name, input }): ToolCall => ({ id: textOf(id), name: textOf(name), input: textOf(input) }));
	return { role: "assistant", content, thought: textOf(turn.thought), toolCalls, facts: readFacts(turn.facts) };
}

/** Omits the request id, which exists only in the sender's request log. */
function readFacts(value: unknown): AnswerStats {
	const facts = isObject(value) ? value : {};
	const figure = (name: string) => {
		const found = facts[name];
		return typeof found === "number" && found >= 0 && found <= Number.MAX_SAFE_INTEGER ? found : null;
	};
	const cost = figure("costNanoUsd");
	return {
		model: textOf(facts.model),
		requestId: null,
		promptTokens: figure("promptTokens"),
		completionTokens: figure("completionTokens"),
		costNanoUsd: cost === null ? null : nanoUsd(Math.round(cost)),
		firstTokenMs: figure("firstTokenMs"),
		totalMs: figure("totalMs") ?? 0,
		stopped: facts.stopped === true,
	};
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
