import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import type { AnswerStream } from "../../src/upstream/call/stream-wire.ts";
import { completionStream } from "../../src/upstream/completions.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { chatCall, limitsWith, modelOver, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { type AnyEvent, assemble } from "./assemble.ts";
import type { AssembledMessage, Recording } from "./recording.ts";

export interface Played {
	readonly said: AssembledMessage;
	/** Kind of the failure; undefined if the stream ended regularly. */
	readonly failed: string | undefined;
}

export interface Player {
	/** Relays the recording's bytes up to `end`, in two reads split at `cut`, from the socket to the client's stream. */
	play(cut?: number, end?: number): Promise<Played>;
	stop(): Promise<void>;
}

export function createPlayer({ bytes, dialect, reasoningTokens, endpoint, n }: Recording): Player {
	let pieces: readonly Uint8Array[] = [];
	const fetch = async () =>
		new Response(
			new ReadableStream({
				start(controller) {
					for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece);
					controller.close();
				},
			}),
			{ headers: { "content-type": "text/event-stream" } },
		);
	const limits = limitsWith({ breakerFailuresInRow: 1e9, breakerFailureShare: 1, healthIntervalMs: 1e9 });
	const upstreams = createUpstreams({ clock: systemClock, log: silentLog, fetch }, { limits: () => limits });
	const at = { url: "http://127.0.0.1:9/v1", apiKey: null, model: "m", maxConcurrency: 4, keepAlive: true };
	const spec = { ...at, dialect, reasoningTokens };
	const model = modelOver([spec]);
	upstreams.sync(snapshotOf(model));

	function open(): AnswerStream<object> {
		const call = chatCall({ choices: n });
		if (endpoint === "chat") return openChat(upstreams, model, call);
		return upstreams.open(
			model,
			completionStream(model, call, { ...call, prompt: new Prompt("x"), shape: { prompts: 1, n } }),
		);
	}

	return {
		async play(cut = 0, end = bytes.length) {
			pieces = [bytes.subarray(0, Math.min(cut, end)), bytes.subarray(Math.min(cut, end), end)];
			const stream = open();
			const events: AnyEvent[] = [];
			let failed: string | undefined;
			try {
				for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next())
					for (const chunk of chunks as readonly AnyEvent[])
						events.push({ ...chunk, choices: chunk.choices, ...(chunk.sources as object) });
			} catch (error) {
				failed = (error as UpstreamFailure).kind;
			}
			const { promptTokens, completionTokens } = stream.usage() ?? {};
			const counted = promptTokens !== undefined && completionTokens !== undefined;
			return { said: { ...assemble(events), usage: counted ? [promptTokens, completionTokens] : null }, failed };
		},
		stop: upstreams.stop,
	};
}

/** Positions for a split: every `every` bytes, around each line end, and inside characters of several bytes. */
export function cutPositions({ bytes }: Recording, every: number): number[] {
	const cuts: number[] = [];
	for (let at = 1; at < bytes.length; at += 1) {
		const [before, after] = [bytes[at - 1], bytes[at]];
		const telling = before === 0x0a || after === 0x0a || before === 0x0d || (before ?? 0) >= 0x80;
		if (telling || at % every === 0) cuts.push(at);
	}
	return cuts;
}
