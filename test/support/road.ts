/** Runs the gateway's real code without sockets and Postgres. The test controls the upstream and the journal. */
import { createAdmission } from "../../src/admission/admission.ts";
import { createOpenRequests } from "../../src/admission/open-requests.ts";
import { newUuid } from "../../src/base/id.ts";
import type { Log } from "../../src/base/log.ts";
import type { Model } from "../../src/catalog/model.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";
import { createBodyMemory } from "../../src/gateway/body/body-memory.ts";
import { createBodyReads } from "../../src/gateway/body/body-reads.ts";
import { type Connection, createSilentConnections } from "../../src/gateway/connection.ts";
import type { ServeDeps } from "../../src/gateway/serve/context.ts";
import { createModelSpeeds } from "../../src/gateway/serve/model-speeds.ts";
import { createOpenStreams } from "../../src/gateway/serve/open-streams.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import type { Journal, JournalMode } from "../../src/ledger/journal.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import type { Progress } from "../../src/ledger/outcome.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import { createWriter } from "../../src/ledger/writer.ts";
import { createKeyLimits } from "../../src/limits/key-limits.ts";
import type { NanoUsd, PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import type { Refusal } from "../../src/ops/refusals.ts";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import type { ChatChunk, ChatReply } from "../../src/upstream/chat/chat-answer.ts";
import type { Upstreams } from "../../src/upstream/upstreams.ts";
import type { TokenUsage } from "../../src/upstream/usage.ts";
import { generousStore } from "./generous-store.ts";
import { plainKey } from "./plain-key.ts";
import { unreadAnswersAlone } from "./unread-answers.ts";
import { modelOver, snapshotOf } from "./upstream-catalog.ts";
import { createManualClock } from "./upstream-clock.ts";

const INPUT = 1_000;
export const OUTPUT_RATE = 2_000;
/** Prompt tokens that the scripted upstream reports. */
const PROMPT = 10;

export const roadModel: Model = modelOver([], {
	rateCard: {
		...modelOver([]).rateCard,
		input: (INPUT * 1_000) as PicoUsdPerUnit,
		cachedInput: (INPUT * 1_000) as PicoUsdPerUnit,
		output: (OUTPUT_RATE * 1_000) as PicoUsdPerUnit,
	},
});

/** Cost of `tokens` output tokens plus the upstream's prompt tokens. */
export const costOf = (tokens: number) => PROMPT * INPUT + tokens * OUTPUT_RATE;

/** A call to the upstream whose answer the test controls. */
export class ScriptedCall {
	usage: TokenUsage | undefined;
	tokens = 0;
	isClosed = false;
	/** True: the call ignores its abort signal and hangs. */
	isDeaf = false;
	/** True: the call reports usage with each event. */
	counts = true;
	readonly signal: AbortSignal;
	readonly #waiting: PromiseWithResolvers<readonly ChatChunk[] | null>[] = [];
	readonly #ready: (readonly ChatChunk[] | null | Error)[] = [];
	readonly #reply = Promise.withResolvers<ChatReply>();

	constructor(signal: AbortSignal) {
		this.signal = signal;
		this.#reply.promise.catch(() => {});
		if (signal.aborted) this.#aborted();
		else signal.addEventListener("abort", () => this.#aborted());
	}

	/** Ends the call by abort signal, by closing the stream, or both, as the code under test does. */
	close(): void {
		if (!this.isClosed && !this.signal.aborted) this.#aborted();
		this.isClosed = true;
	}

	get isHungUp(): boolean {
		return this.isClosed || this.signal.aborted;
	}

	#aborted(): void {
		if (this.isDeaf) return;
		const failure = new UpstreamFailure("aborted", { private: "the client left" });
		for (const step of this.#waiting.splice(0)) step.reject(failure);
		this.#ready.unshift(failure);
		this.#reply.reject(failure);
	}

	/** Delivers output, one token per word. */
	arrive(...words: string[]): void {
		this.tokens += words.length;
		if (this.counts) this.count();
		const delta = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
		this.#put(words.map((word) => ({ ...delta(word), outputBytes: word.length })));
	}

	/** Ends the answer with its usage. */
	end(): void {
		this.count();
		this.#put(null);
	}

	fail(error: Error = new UpstreamFailure("died", { private: "scripted" })): void {
		this.#put(error);
		this.#reply.reject(error);
	}

	reply(tokens: number): void {
		this.tokens = tokens;
		this.count();
		const message = { role: "assistant", content: "~".repeat(tokens) };
		const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" as const }];
		this.#reply.resolve({ choices, usage: this.usage, outputBytes: tokens });
	}

	count(): void {
		this.usage = { promptTokens: PROMPT, completionTokens: this.tokens, cachedTokens: 0, reasoningTokens: 0 };
	}

	/** Returns the next events, as an AnswerStream does; null at the end. */
	next(): Promise<readonly ChatChunk[] | null> {
		const step = Promise.withResolvers<readonly ChatChunk[] | null>();
		const ready = this.#ready.shift();
		if (ready === undefined) this.#waiting.push(step);
		else if (ready instanceof Error) step.reject(ready);
		else step.resolve(ready);
		return step.promise;
	}

	get whole(): Promise<ChatReply> {
		return this.#reply.promise;
	}

	#put(step: readonly ChatChunk[] | null | Error): void {
		const waiting = this.#waiting.shift();
		if (waiting === undefined) this.#ready.push(step);
		else if (step instanceof Error) waiting.reject(step);
		else waiting.resolve(step);
	}
}

/** A journal whose disk the test can delay or break. */
function scriptedJournal() {
	const control = {
		progress: [] as (Progress & { id: string })[],
		settled: 0,
		isBroken: false,
		/** True: a write is on disk at once. False: each `durable` waits in `syncs`. */
		isDurable: true,
		syncs: [] as PromiseWithResolvers<void>[],
	};
	const write = () => {
		if (control.isBroken) throw new Error("scripted: the disk takes nothing");
	};
	const journal: Journal = {
		admit: () => 1,
		progress(json) {
			write();
			control.progress.push(JSON.parse(json));
		},
		settle() {
			write();
			control.settled += 1;
		},
		carry: () => 1,
		*settlements() {},
		keepsFrom: () => 0,
		acknowledge() {},
		durable() {
			if (control.isDurable) return Promise.resolve();
			const sync = Promise.withResolvers<void>();
			sync.promise.catch(() => {});
			control.syncs.push(sync);
			return sync.promise;
		},
		problem: () => undefined,
		size: () => ({ segments: 1, bytes: 0 }),
		close() {},
		destroy() {},
	};
	return { journal, control };
}

export interface RoadOptions {
	readonly mode?: JournalMode;
	readonly holdStatusMs?: number;
}

export function createRoad(options: RoadOptions = {}) {
	const clock = createManualClock();
	const { journal, control } = scriptedJournal();
	const logged: string[] = [];
	const gaps: number[] = [];
	const note = (message: string) => void logged.push(message);
	const log: Log = { debug: note, info: note, warn: note, error: note, with: () => log, isOn: () => true };
	/** While set, grants of Postgres are delayed, so that requests wait for credit. */
	let credit: { asked: PromiseWithResolvers<void>; granted: PromiseWithResolvers<void> } | undefined;
	const store = generousStore(() => {
		credit?.asked.resolve();
		return credit?.granted.promise;
	});
	const writer = createWriter(
		{ store, clock, log },
		{ flushIntervalMs: 100, flushAt: 256, batchMax: 1_000, queueMax: 10_000 },
	);
	const slices = createSlices({ store, clock, log, newUuid }, { horizonMs: 40_000 });
	const ledger = createLedger(
		{ slices, journal, writer, close: async () => {}, clock, log },
		{ epoch: 1, mode: options.mode ?? "process" },
	);
	const keyLimits = createKeyLimits({ clock });
	const settled: SettledEvent[] = [];
	const refused: Refusal[] = [];
	const counted: string[] = [];
	const calls: ScriptedCall[] = [];
	const arrivals: PromiseWithResolvers<ScriptedCall>[] = [];
	const arrival = (nth: number) => {
		arrivals[nth - 1] ??= Promise.withResolvers();
		return arrivals[nth - 1] as PromiseWithResolvers<ScriptedCall>;
	};
	const call = (signal: AbortSignal) => {
		const made = new ScriptedCall(signal);
		calls.push(made);
		arrival(calls.length).resolve(made);
		return made;
	};
	let contended = false;
	const upstreams = {
		contended: () => contended,
		open(_: Model, { context: { signal } }: { context: { signal: AbortSignal } }) {
			const made = call(signal);
			let came: readonly ChatChunk[] | null = null;
			return {
				next: () => made.next(),
				async arrives() {
					came = await made.next();
					return { done: came === null };
				},
				take: () => came,
				brokeOff(error: unknown) {
					throw error;
				},
				usage: () => made.usage,
				usageIsFinal: () => true,
				tokensLikely: () => undefined,
				replica: () => "m#0",
				close: () => made.close(),
			};
		},
		call: async (_: Model, { context: { signal } }: { context: { signal: AbortSignal } }) => ({
			reply: await call(signal).whole,
			replica: "m#0",
		}),
	} as unknown as Upstreams;
	const openStreams = createOpenStreams({ clock });
	const key = plainKey();
	const deps: ServeDeps = {
		authenticate: () => key,
		catalog: {
			current: () => snapshotOf(roadModel),
			limits: () => ({ ...DEFAULT_LIMITS, holdStatusMs: options.holdStatusMs ?? DEFAULT_LIMITS.holdStatusMs }),
			fastestFirst: createModelSpeeds({ clock }).fastestFirst,
		},
		admission: createAdmission({
			ledger: () => ledger,
			closedReason: () => undefined,
			keyLimits,
			limits: () => DEFAULT_LIMITS,
			openRequests: createOpenRequests({ limits: () => DEFAULT_LIMITS }),
			clock,
			onSettled: (event) => void settled.push(event),
		}),
		upstreams,
		clients: {
			bodyMemory: createBodyMemory({ limits: () => DEFAULT_LIMITS }),
			bodyReads: createBodyReads(clock),
			unreadAnswers: unreadAnswersAlone(),
			openStreams,
			silentConnections: createSilentConnections(clock),
		},
		telemetry: {
			log,
			stats: { refuse: (code) => void counted.push(code), gap: (ms) => void gaps.push(ms) },
			refusals: { record: (refusal) => void refused.push(refusal) },
		},
		clock,
	};
	return {
		deps,
		key,
		clock,
		journal: control,
		openStreams,
		settled,
		refused,
		counted,
		logged,
		/** Total milliseconds that readers waited for the next event. */
		gaps,
		calls,
		/** Delays grants until `grant` is called; `asked` resolves once a request waits for credit. */
		withholdCredit() {
			credit = { asked: Promise.withResolvers(), granted: Promise.withResolvers() };
			return { asked: credit.asked.promise, grant: credit.granted.resolve };
		},
		/** Resolves with the nth call to the upstream (counted from 1) once that call exists. */
		call(nth = 1): Promise<ScriptedCall> {
			return arrival(nth).promise;
		},
		/** Sets whether the pool of replicas reports that other requests wait for capacity. */
		contend(others: boolean): void {
			contended = others;
		},
		/** What requests leave behind: holds, slots, streams, and timers other than those of the parts themselves. */
		leftovers: () => ({
			running: ledger.view().running,
			held: [...ledger.slices()].map(({ held }): NanoUsd => held),
			ofKey: keyLimits.running(key.id),
			streams: openStreams.size(),
		}),
	};
}

export type Road = ReturnType<typeof createRoad>;

export const NOTHING_LEFT = { running: 0, held: [0, 0] as NanoUsd[], ofKey: 0, streams: 0 };

export function fakeRequest(body: Record<string, unknown>, path = "/v1/chat/completions") {
	const leaving = new AbortController();
	const timeouts: number[] = [];
	const request = new Request(`http://internal.example${path}`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({ model: roadModel.id, messages: [{ role: "user", content: "hello" }], ...body }),
		signal: leaving.signal,
	});
	const connection: Connection = { request, address: "", setIdleTimeout: (seconds) => void timeouts.push(seconds) };
	return { connection, timeouts, leave: () => leaving.abort() };
}

export interface TextReader {
	read(): Promise<{ readonly done: boolean; readonly value: string }>;
	cancel(): Promise<void>;
}

export function readerOf(response: Response): TextReader {
	const reader = (response.body as ReadableStream<Uint8Array>).getReader();
	const decoder = new TextDecoder();
	return {
		async read() {
			const { done, value } = await reader.read();
			return { done, value: decoder.decode(value, { stream: !done }) };
		},
		cancel: () => reader.cancel(),
	};
}

export const nextTurn = () => Bun.sleep(0);
