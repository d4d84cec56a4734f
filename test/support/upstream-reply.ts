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
export interface Reply {
	readonly script: Script;
	text(text: string | string[]): Reply;
	reasoning(text: string | string[]): Reply;
	/** Adds a tool call, whose arguments are split into two pieces. */
	toolCall(name: string, args: object, id?: string): Reply;
	stop(): Reply;
	length(): Reply;
	/** Sets the finish reason, which may be invalid. */
	finish(reason: string): Reply;
	usage(usage: ScriptUsage | null): Reply;
	/** Waits this many milliseconds between events. */
	trickle(gapMs: number): Reply;
	delay(delayMs: number): Reply;
	/** Sends nothing before the promise resolves. */
	behind(gate: Promise<void>): Reply;
	/** Pauses after this many pieces until the promise resolves. */
	pauseAfter(pieces: number, until: Promise<void>): Reply;
	hang(): Reply;
	reset(): Reply;
	/** Breaks the connection after this many pieces. */
	dieAfter(pieces: number): Reply;
	/** Ends the body without an error after this many pieces, but without finish reason and end marker. */
	endAfter(pieces: number): Reply;
	/** Sends nothing after this many pieces, and keeps the connection open. */
	stallAfter(pieces: number): Reply;
	/** Sends an error event after this many pieces (default: before the first one), then `[DONE]`. */
	errorEvent(after?: number, body?: unknown): Reply;
	errorStatus(status: number, body?: unknown, headers?: Record<string, string>): Reply;
	raw(body: string | Uint8Array, contentType?: string): Reply;
	withoutEndMarker(): Reply;
	wholeBody(): Reply;
	eventsAs(contentType: string): Reply;
	status(status: number): Reply;
	lie(lies: { top?: object; choice?: object; delta?: object }): Reply;
}

export function reply(): Reply {
	const script: Script = {
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
	const set = (change: Partial<Script>): Reply => {
		Object.assign(script, change);
		return self;
	};
	const add = (pieces: ReplyPiece[]): Reply => set({ pieces: [...(script.pieces ?? []), ...pieces] });
	const self: Reply = {
		script,
		text: (text) => add(wordsOf(text).map((word) => ({ kind: "text", text: word }))),
		reasoning: (text) => add(wordsOf(text).map((word) => ({ kind: "reasoning", text: word }))),
		toolCall(name, args, id) {
			const index = new Set(
				(script.pieces ?? []).map((piece) => (piece.kind === "tool" ? piece.index : -1)).filter((at) => at >= 0),
			).size;
			const json = JSON.stringify(args);
			const half = Math.ceil(json.length / 2);
			set({ finish: "tool_calls" });
			return add([
				{ kind: "tool", index, id: id ?? `call_${index}`, name, arguments: json.slice(0, half) },
				{ kind: "tool", index, arguments: json.slice(half) },
			]);
		},
		stop: () => set({ finish: "stop" }),
		length: () => set({ finish: "length" }),
		finish: (finish) => set({ finish }),
		usage: (usage) => set({ usage }),
		trickle: (gapMs) => set({ gapMs }),
		delay: (delayMs) => set({ delayMs }),
		behind: (gate) => set({ gate }),
		pauseAfter: (after, until) => set({ pause: { after, until } }),
		hang: () => set({ instead: "hang" }),
		reset: () => set({ instead: "reset" }),
		dieAfter: (after) => set({ breaks: { after, how: "reset" } }),
		endAfter: (after) => set({ breaks: { after, how: "end" } }),
		stallAfter: (after) => set({ breaks: { after, how: "stall" } }),
		errorEvent: (after = 0, body) => set({ breaks: { after, how: "error", body } }),
		errorStatus: (
			status,
			body = { error: { message: "scripted", type: "server_error", param: null, code: null } },
			headers = {},
		) =>
			set({
				instead: {
					status,
					body: typeof body === "string" ? body : JSON.stringify(body),
					headers: { "content-type": "application/json", ...headers },
				},
			}),
		raw: (body, contentType = "text/event-stream") =>
			set({ instead: { status: 200, body, headers: { "content-type": contentType } } }),
		withoutEndMarker: () => set({ endMarker: false }),
		wholeBody: () => set({ whole: true }),
		eventsAs: (contentType) => set({ eventsAs: contentType }),
		status: (status) => set({ status }),
		lie: (lies) => set({ lies: { ...script.lies, ...lies } }),
	};
	return self;
}

/** Splits "a b c" into "a", " b" and " c", which joined are the text. */
export function wordsOf(text: string | string[]): string[] {
	return typeof text === "string" ? (text.match(/\s*\S+|\s+$/g) ?? []) : text;
}
