/** An answer that a test scripts for one request, in any dialect. See `upstream-server.ts`. */

export interface ScriptUsage {
	prompt: number;
	completion: number;
	cached?: number;
	reasoning?: number;
}

export type ReplyPiece =
	| { kind: "text" | "reasoning"; text: string }
	/** A tool call's first piece has its id and name; later pieces have more of its arguments. */
	| { kind: "tool"; index: number; id?: string; name?: string; arguments: string };

/** How the answer breaks off, and after how many pieces of its first choice. */
export interface ReplyBreak {
	after: number;
	how: "reset" | "end" | "stall" | "error";
	body?: unknown;
}

export interface Script {
	/** Undefined: the answer repeats the last message. */
	pieces: ReplyPiece[] | undefined;
	finish: string;
	/** Undefined: the usage counts the pieces. Null: the answer has no usage. */
	usage: ScriptUsage | null | undefined;
	gapMs: number;
	/** The answer pauses after this many pieces until the promise resolves. */
	pause: { after: number; until: Promise<void> } | undefined;
	delayMs: number;
	gate: Promise<void> | undefined;
	breaks: ReplyBreak | undefined;
	instead:
		| { status: number; body: string | Uint8Array; headers: Record<string, string> }
		| "hang"
		| "reset"
		| undefined;
	endMarker: boolean;
	/** True: a streamed request is answered with one JSON body. */
	whole: boolean;
	/** Content type of an answer whose events are sent for every request, streamed or not. */
	eventsAs: string | undefined;
	status: number;
	/** Wrong or additional fields in every event and body, and in every choice and delta. */
	lies: { top: object; choice: object; delta: object };
}

/** A scripted answer. Methods change it and return it. One piece is one token. */
export class Reply {
	readonly script: Script = {
		pieces: undefined,
		finish: "stop",
		usage: undefined,
		gapMs: 0,
		pause: undefined,
		delayMs: 0,
		gate: undefined,
		breaks: undefined,
		instead: undefined,
		endMarker: true,
		whole: false,
		eventsAs: undefined,
		status: 200,
		lies: { top: {}, choice: {}, delta: {} },
	};

	text = (text: string | string[]) => this.#add(wordsOf(text).map((word) => ({ kind: "text", text: word })));
	reasoning = (text: string | string[]) => this.#add(wordsOf(text).map((word) => ({ kind: "reasoning", text: word })));

	/** Adds a tool call, whose arguments are split into two pieces. */
	toolCall(name: string, args: object, id?: string) {
		const tools = (this.script.pieces ?? []).flatMap((piece) => (piece.kind === "tool" ? [piece.index] : []));
		const index = new Set(tools).size;
		const json = JSON.stringify(args);
		const half = Math.ceil(json.length / 2);
		return this.finish("tool_calls").#add([
			{ kind: "tool", index, id: id ?? `call_${index}`, name, arguments: json.slice(0, half) },
			{ kind: "tool", index, arguments: json.slice(half) },
		]);
	}

	/** Sets the finish reason, which may be invalid. */
	finish = (finish: string) => this.#set({ finish });
	usage = (usage: ScriptUsage | null) => this.#set({ usage });
	/** Waits this many milliseconds between events. */
	trickle = (gapMs: number) => this.#set({ gapMs });
	delay = (delayMs: number) => this.#set({ delayMs });
	/** Sends nothing before the promise resolves. */
	behind = (gate: Promise<void>) => this.#set({ gate });
	/** Pauses after this many pieces until the promise resolves. */
	pauseAfter = (after: number, until: Promise<void>) => this.#set({ pause: { after, until } });
	hang = () => this.#set({ instead: "hang" });
	reset = () => this.#set({ instead: "reset" });
	/** Breaks the connection after this many pieces. */
	dieAfter = (after: number) => this.#set({ breaks: { after, how: "reset" } });
	/** Ends the body without an error after this many pieces, but without finish reason and end marker. */
	endAfter = (after: number) => this.#set({ breaks: { after, how: "end" } });
	/** Sends nothing after this many pieces, and keeps the connection open. */
	stallAfter = (after: number) => this.#set({ breaks: { after, how: "stall" } });
	/** Sends an error event after this many pieces, then `[DONE]`. */
	errorEvent = (after = 0, body?: unknown) => this.#set({ breaks: { after, how: "error", body } });

	errorStatus(
		status: number,
		given: unknown = { error: { message: "scripted", type: "server_error", param: null, code: null } },
		more: Record<string, string> = {},
	) {
		const body = typeof given === "string" ? given : JSON.stringify(given);
		return this.#set({ instead: { status, body, headers: { "content-type": "application/json", ...more } } });
	}

	raw = (body: string | Uint8Array, contentType = "text/event-stream") =>
		this.#set({ instead: { status: 200, body, headers: { "content-type": contentType } } });
	withoutEndMarker = () => this.#set({ endMarker: false });
	wholeBody = () => this.#set({ whole: true });
	eventsAs = (contentType: string) => this.#set({ eventsAs: contentType });
	status = (status: number) => this.#set({ status });
	lie = (lies: Partial<Script["lies"]>) => this.#set({ lies: { ...this.script.lies, ...lies } });

	#set(change: Partial<Script>): this {
		Object.assign(this.script, change);
		return this;
	}

	#add(pieces: ReplyPiece[]): this {
		return this.#set({ pieces: [...(this.script.pieces ?? []), ...pieces] });
	}
}

export const reply = () => new Reply();

/** Splits "a b c" into "a", " b" and " c", which joined are the text. */
export function wordsOf(text: string | string[]): string[] {
	return typeof text === "string" ? (text.match(/\s*\S+|\s+$/g) ?? []) : text;
}
