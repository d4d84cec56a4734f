/** A scripted answer to one request, independent of dialects. See `upstream-server.ts`. */

export interface ScriptUsage {
	prompt: number;
	completion: number;
	cached?: number;
	reasoning?: number;
}

export type Piece =
	| { kind: "text" | "reasoning"; text: string }
	/** The first piece of a call has its id and name, later ones only more arguments. */
	| { kind: "tool"; index: number; id?: string; name?: string; arguments: string };

/** How the answer breaks off after so many pieces of the first choice. */
export interface Break {
	after: number;
	how: "reset" | "end" | "stall" | "error";
	body?: unknown;
}

export interface Script {
	/** Undefined: echoes the last message. */
	pieces: Piece[] | undefined;
	finish: string;
	/** Undefined: counts the pieces. Null: sends no usage. */
	usage: ScriptUsage | null | undefined;
	gapMs: number;
	/** Waits for this after so many pieces. */
	pause: { after: number; until: Promise<void> } | undefined;
	delayMs: number;
	gate: Promise<void> | undefined;
	breaks: Break | undefined;
	instead:
		| { status: number; body: string | Uint8Array; headers: Record<string, string> }
		| "hang"
		| "reset"
		| undefined;
	endMarker: boolean;
	/** Answers a streamed request with one JSON body. */
	whole: boolean;
	/** Answers every request with events of this content type. */
	eventsAs: string | undefined;
	status: number;
	/** Merged into every event and body, and into every choice and delta. */
	lies: { top: object; choice: object; delta: object };
}

/** Every method changes the reply and returns it. One piece is one token. */
export interface Reply {
	readonly script: Script;
	text(text: string | string[]): Reply;
	reasoning(text: string | string[]): Reply;
	/** Arguments are sent in two pieces. */
	toolCall(name: string, args: object, id?: string): Reply;
	stop(): Reply;
	length(): Reply;
	/** Any finish reason, valid or not. */
	finish(reason: string): Reply;
	usage(usage: ScriptUsage | null): Reply;
	/** Pause between events, milliseconds. */
	trickle(gapMs: number): Reply;
	delay(delayMs: number): Reply;
	/** Sends nothing before this resolves. */
	behind(gate: Promise<void>): Reply;
	/** Pauses after so many pieces until this resolves. */
	pauseAfter(pieces: number, until: Promise<void>): Reply;
	hang(): Reply;
	reset(): Reply;
	/** Breaks the connection after so many pieces. */
	dieAfter(pieces: number): Reply;
	/** Ends the body regularly after so many pieces, without finish reason and end marker. */
	endAfter(pieces: number): Reply;
	/** Goes silent after so many pieces; the connection stays open. */
	stallAfter(pieces: number): Reply;
	/** Sends an error event after so many pieces (default 0: before the first), then `[DONE]`. */
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
	const add = (pieces: Piece[]): Reply => set({ pieces: [...(script.pieces ?? []), ...pieces] });
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

/** "a b c" as "a", " b", " c", which join to the text. */
export function wordsOf(text: string | string[]): string[] {
	return typeof text === "string" ? (text.match(/\s*\S+|\s+$/g) ?? []) : text;
}
