import { newId } from "../../base/id.ts";
import { serverFailure } from "../call/failure.ts";
import { asCount, asObject, asText, filledText, type JsonObject } from "../wire-value.ts";
import { TOOL_CALL_READERS } from "./answer-fields.ts";

const CALLS_MAX = 1_024;
const INDEX_MAX = 2 ** 31 - 1;
/** Arguments of a call that the server sent without any, because SDKs parse arguments as JSON. */
const NO_ARGUMENTS = "{}";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = 0x7b;
const CLOSING = 0x7d;

interface OutputCount {
	outputBytes: number;
}

/** A tool call of a stream, to which later fragments are added. */
class StreamedCall {
	/** Index and id that the server sent. Several calls may have the same. */
	readonly index: number | undefined;
	readonly id: string | undefined;
	readonly kind: "function" | "custom";
	name = "";
	hasArguments = false;
	/** True once the JSON object of the arguments is closed. */
	isComplete = false;
	#depth = 0;
	#inText = false;
	#escaped = false;

	constructor(index: number | undefined, id: string | undefined, isCustom: boolean) {
		this.index = index;
		this.id = id;
		this.kind = isCustom ? "custom" : "function";
	}

	addArguments(text: string): void {
		this.hasArguments ||= text.trim() !== "";
		for (let at = 0; at < text.length; at += 1) {
			const sign = text.charCodeAt(at);
			if (this.#escaped) this.#escaped = false;
			else if (sign === QUOTE) this.#inText = !this.#inText;
			else if (this.#inText) this.#escaped = sign === BACKSLASH;
			else if (sign === OPENING) this.#depth += 1;
			else if (sign === CLOSING) {
				this.#depth -= 1;
				this.isComplete ||= this.#depth === 0;
			}
		}
	}
}

/**
 * Tool calls of a streamed choice, numbered from 0 in order of appearance. Servers' indexes may all be equal, start at
 * 1, have gaps or change, so a new index alone does not start a call.
 */
export class ToolCalls {
	readonly #calls: StreamedCall[] = [];
	/** The call in the deprecated form (`function_call`), which allows only one. */
	#function: StreamedCall | undefined;

	/** Adds a fragment to the event's calls. A call's first fragment has id, type and name, later ones only new text. */
	add(raw: JsonObject, event: JsonObject[], count: OutputCount): void {
		const index = asCount(raw.index, INDEX_MAX);
		const id = filledText(raw.id);
		const custom = raw.type === "custom" || raw.custom !== undefined ? asObject(raw.custom) : undefined;
		const body = custom ?? asObject(raw.function) ?? {};
		const known = this.#known(index, id);
		const others = othersOfCall(raw);
		if (this.#opens(known, index, id, filledText(body.name))) {
			if (this.#calls.length === CALLS_MAX) throw serverFailure("an answer with too many tool calls");
			const call = new StreamedCall(index, id, custom !== undefined);
			const own = id === undefined || id === known?.id ? newId("call") : id;
			const part = { name: "", ...partOf(body, call, count) };
			event.push({ index: this.#calls.length, id: own, type: call.kind, [call.kind]: part, ...others });
			this.#calls.push(call);
			return;
		}
		const call = known ?? (this.#calls.at(-1) as StreamedCall);
		append(event, this.#calls.indexOf(call), call, partOf(body, call, count), others);
	}

	addFunction(raw: JsonObject, count: OutputCount): JsonObject {
		this.#function ??= new StreamedCall(undefined, undefined, false);
		return partOf(raw, this.#function, count);
	}

	/** Adds empty arguments to calls without arguments. Call it at the end of the choice. */
	end(delta: Record<string, unknown>): void {
		for (const [place, call] of this.#calls.entries()) {
			if (call.kind === "custom" || call.hasArguments) continue;
			call.hasArguments = true;
			const event = (delta.tool_calls ?? []) as JsonObject[];
			append(event, place, call, { arguments: NO_ARGUMENTS });
			delta.tool_calls = event;
		}
		if (this.#function === undefined || this.#function.hasArguments) return;
		this.#function.hasArguments = true;
		delta.function_call = { ...asObject(delta.function_call), arguments: NO_ARGUMENTS };
	}

	/** The last call with this id; if there is none, the last call with this index. */
	#known(index: number | undefined, id: string | undefined): StreamedCall | undefined {
		const ofId = id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
		return ofId ?? (index === undefined ? undefined : this.#calls.findLast((call) => call.index === index));
	}

	/**
	 * True if a fragment starts a call. Without a name it continues a known call, because vLLM 0.6 gives each fragment a
	 * new id. With a name it starts a call if its id is new or the known call is complete.
	 */
	#opens(
		known: StreamedCall | undefined,
		index: number | undefined,
		id: string | undefined,
		name: string | undefined,
	): boolean {
		if (known === undefined) return this.#calls.length === 0 || id !== undefined || name !== undefined;
		if (name === undefined) return false;
		if (id === undefined || id !== known.id) return id !== undefined || known.isComplete;
		return known.isComplete && (name !== known.name || index !== known.index);
	}
}

/** The fragment's new members, without a name that the call already has. */
function partOf(body: JsonObject, call: StreamedCall, count: OutputCount): JsonObject {
	const isCustom = call.kind === "custom";
	const text = (isCustom ? asText(body.input) : argumentsText(body.arguments)) ?? "";
	const name = body.name === call.name ? undefined : filledText(body.name);
	count.outputBytes += Buffer.byteLength(name ?? "") + Buffer.byteLength(text);
	if (!isCustom) call.addArguments(text);
	call.name += name ?? "";
	return { ...(name === undefined ? {} : { name }), [isCustom ? "input" : "arguments"]: text };
}

/** Merges several fragments of a call in one event, because SDKs expect each call only once in the first event. */
function append(
	event: JsonObject[],
	index: number,
	{ kind }: StreamedCall,
	part: JsonObject,
	others?: JsonObject,
): void {
	const at = event.findIndex((call) => call.index === index);
	const before = event[at];
	if (before === undefined) {
		event.push({ index, [kind]: part, ...others });
		return;
	}
	const body: Record<string, unknown> = { ...asObject(before[kind]) };
	for (const name in part) body[name] = `${body[name] ?? ""}${part[name]}`;
	event[at] = { ...before, [kind]: body, ...others };
}

export function rebuildToolCall(raw: JsonObject, count: OutputCount): JsonObject {
	const id = filledText(raw.id) ?? newId("call");
	const custom = raw.type === "custom" ? asObject(raw.custom) : undefined;
	const others = othersOfCall(raw);
	if (custom === undefined)
		return { id, type: "function", function: rebuildFunction(asObject(raw.function) ?? {}, count), ...others };
	const name = asText(custom.name) ?? "";
	const input = asText(custom.input) ?? "";
	count.outputBytes += Buffer.byteLength(name) + Buffer.byteLength(input);
	return { id, type: "custom", custom: { name, input }, ...others };
}

export function rebuildFunction(raw: JsonObject, count: OutputCount): JsonObject {
	const name = asText(raw.name) ?? "";
	const args = argumentsText(raw.arguments) ?? "";
	count.outputBytes += Buffer.byteLength(name) + Buffer.byteLength(args);
	return { name, arguments: args.trim() === "" ? NO_ARGUMENTS : args };
}

function othersOfCall(raw: JsonObject): JsonObject | undefined {
	let others: Record<string, unknown> | undefined;
	for (const [name, read] of TOOL_CALL_READERS) {
		const value = raw[name] === undefined ? undefined : read(raw[name]);
		if (value === undefined) continue;
		others ??= {};
		others[name] = value;
	}
	return others;
}

/** Arguments as JSON text, because some servers send an object. */
function argumentsText(value: unknown): string | undefined {
	if (typeof value === "string") return value;
	return typeof value === "object" && value !== null ? JSON.stringify(value) : undefined;
}
