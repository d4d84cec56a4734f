/**
 * Writes a scripted answer as bytes of one family of servers, with the quirks that dialects in `src/upstream` handle.
 */
import type { DialectName } from "../../src/catalog/model.ts";
import type { ReplyPiece, Script, ScriptUsage } from "./upstream-reply.ts";

/** An event of a stream. `pieces` counts its tokens of the first choice, `tokens` those of all choices. */
export interface WireEvent {
	payload: string;
	pieces: number;
	tokens: number;
}

/** A scripted answer in which all defaults are filled in. */
export interface Answer {
	pieces: ReplyPiece[];
	finish: string;
	/** `completion` counts the tokens of one choice. */
	usage: ScriptUsage | null;
	choices: number;
	lies: Script["lies"];
	model: string;
}

export interface StreamOptions {
	includeUsage: boolean;
	continuousUsage: boolean;
}

type Json = Record<string, unknown>;

/** Dialects that have chats. */
export const CHAT_DIALECTS: readonly DialectName[] = ["openai", "vllm", "sglang", "llama.cpp", "ollama", "tgi"];
/** Dialects whose servers return a single choice, whatever `n` is. */
export const SINGLE_CHOICE: ReadonlySet<DialectName> = new Set(["ollama", "tgi"]);

export function streamEvents(dialect: DialectName, answer: Answer, wish: StreamOptions): WireEvent[] {
	const events: WireEvent[] = [];
	const sent = new Array<number>(answer.choices).fill(0);
	let clock = 1_767_225_600;
	const send = (choices: Json[], more: Json, pieces = 0, tokens = 0) => {
		const nulls = dialect === "sglang" || dialect === "tgi" ? { usage: null } : {};
		if (dialect === "sglang") clock += 1;
		const id = dialect === "tgi" && choices.length === 0 ? "" : "chatcmpl-upstream";
		const body = {
			id,
			object: "chat.completion.chunk",
			created: clock,
			model: answer.model,
			choices,
			...nulls,
			...more,
			...answer.lies.top,
		};
		events.push({ payload: JSON.stringify(body), pieces, tokens });
	};
	const choiceOf = (index: number, delta: Json, finish: string | null): Json => {
		const extra =
			dialect === "sglang" ? { logprobs: null, matched_stop: null } : dialect === "vllm" ? { token_ids: [1] } : {};
		return { index, delta: { ...delta, ...answer.lies.delta }, finish_reason: finish, ...extra, ...answer.lies.choice };
	};
	const running = (index: number): Json =>
		wish.continuousUsage && answer.usage !== null
			? { usage: usageJson(dialect, { prompt: answer.usage.prompt, completion: sent[index] ?? 0 }) }
			: {};

	for (let index = 0; index < answer.choices; index += 1) {
		if (dialect !== "ollama")
			send(
				[choiceOf(index, { role: "assistant", content: dialect === "llama.cpp" ? null : "" }, null)],
				running(index),
			);
	}
	answer.pieces.forEach((piece, at) => {
		for (let index = 0; index < answer.choices; index += 1) {
			sent[index] = (sent[index] ?? 0) + 1;
			const role = dialect === "ollama" && at === 0 ? { role: "assistant" } : {};
			send([choiceOf(index, { ...role, ...deltaOf(dialect, piece) }, null)], running(index), index === 0 ? 1 : 0, 1);
		}
	});
	for (let index = 0; index < answer.choices; index += 1) {
		send([choiceOf(index, {}, finishOf(dialect, answer.finish))], running(index));
		if (dialect === "llama.cpp" && wish.includeUsage && answer.usage !== null) {
			send([], {
				usage: usageJson(dialect, answer.usage),
				timings: timingsOf(answer.usage),
				__verbose: { prompt: "<s>secret" },
			});
		}
	}
	if (dialect !== "llama.cpp" && wish.includeUsage && answer.usage !== null) {
		send([], { usage: usageJson(dialect, { ...answer.usage, completion: answer.usage.completion * answer.choices }) });
	}
	return events;
}

export function wholeBody(dialect: DialectName, answer: Answer): Json {
	const choices = Array.from({ length: answer.choices }, (_, index) => ({
		index,
		message: { ...messageOf(dialect, answer.pieces), ...answer.lies.delta },
		logprobs: null,
		finish_reason: finishOf(dialect, answer.finish),
		...answer.lies.choice,
	}));
	// llama.cpp counts only the tokens of the first choice here.
	const counted = dialect === "llama.cpp" ? 1 : answer.choices;
	const usage = answer.usage && usageJson(dialect, { ...answer.usage, completion: answer.usage.completion * counted });
	return {
		id: "chatcmpl-upstream",
		object: "chat.completion",
		created: 1_767_225_600,
		model: dialect === "llama.cpp" ? "/models/secret.gguf" : answer.model,
		choices,
		...(usage === null ? {} : { usage }),
		...(dialect === "llama.cpp" && answer.usage !== null ? { timings: timingsOf(answer.usage) } : {}),
		...answer.lies.top,
	};
}

/** llama.cpp reports cached tokens only in its timings. */
const timingsOf = ({ prompt, cached = 0 }: ScriptUsage) => ({ prompt_n: prompt - cached, cache_n: cached });

/** Returns the error event that servers of this dialect send in the middle of a stream. */
export function errorPayload(dialect: DialectName): string {
	const message = "secret engine trouble at /srv/model";
	if (dialect === "tgi") return JSON.stringify({ error: { message, http_status_code: 422 } });
	// Ollama does not send the error: it sends an empty event and then the end.
	if (dialect === "ollama")
		return JSON.stringify({ model: "", choices: [{ index: 0, delta: { content: "" }, finish_reason: null }] });
	return JSON.stringify({ error: { message, type: "InternalServerError", param: null, code: 500 } });
}

function usageJson(dialect: DialectName, usage: ScriptUsage): Json {
	const { prompt, completion, cached, reasoning } = usage;
	return {
		prompt_tokens: prompt,
		completion_tokens: completion,
		total_tokens: prompt + completion,
		...(cached === undefined || dialect === "llama.cpp" ? {} : { prompt_tokens_details: { cached_tokens: cached } }),
		...(reasoning === undefined
			? {}
			: dialect === "sglang"
				? { reasoning_tokens: reasoning }
				: { completion_tokens_details: { reasoning_tokens: reasoning } }),
	};
}

function deltaOf(dialect: DialectName, piece: ReplyPiece): Json {
	if (piece.kind !== "tool") return { [piece.kind === "text" ? "content" : reasoningField(dialect)]: piece.text };
	const { index, id, name, arguments: args } = piece;
	const header = id === undefined ? {} : { id, type: "function" };
	return { tool_calls: [{ index, ...header, function: { ...(name === undefined ? {} : { name }), arguments: args } }] };
}

function messageOf(dialect: DialectName, pieces: ReplyPiece[]): Json {
	const join = (kind: ReplyPiece["kind"]) =>
		pieces.map((piece) => (piece.kind === kind && piece.kind !== "tool" ? piece.text : "")).join("");
	const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
	for (const piece of pieces) {
		if (piece.kind !== "tool") continue;
		const { index, id, name } = piece;
		const call = calls[index] ?? { id: id ?? "", type: "function", function: { name: name ?? "", arguments: "" } };
		calls[index] = call;
		call.function.arguments += piece.arguments;
	}
	const reasoning = join("reasoning");
	return {
		role: "assistant",
		content: join("text") || (calls.length > 0 ? null : ""),
		...(reasoning === "" ? {} : { [reasoningField(dialect)]: reasoning }),
		...(calls.length === 0 ? {} : { tool_calls: calls }),
	};
}

function reasoningField(dialect: DialectName): string {
	return dialect === "ollama" || dialect === "vllm" ? "reasoning" : "reasoning_content";
}

function finishOf(dialect: DialectName, finish: string): string {
	return dialect === "tgi" && finish === "stop" ? "eos_token" : finish;
}
