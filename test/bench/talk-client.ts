/** Many people who talk with a model at once: streams of all lengths, each followed by another person's; some hang up. */
import { createRandom } from "../support/random.ts";
import { STAMP_DIGITS } from "./fast-upstream.ts";
import type { Histogram } from "./histogram.ts";
import { createHistogram } from "./histogram.ts";
import { openConnection, type RawConnection } from "./raw-connection.ts";
import { sharedMs } from "./shared-clock.ts";

export interface TalkOptions {
	readonly port: number;
	/** Open at once, begun one after the other over `rampMs`. */
	readonly streams: number;
	readonly rampMs: number;
	/** No stream is begun after it; those under way go on to their ends. */
	readonly durationMs: number;
	/** Of all streams: these are hung up on after some tokens. */
	readonly hangUpShare: number;
	readonly seed: number;
	/** The next request's bytes. `owner` is what `refused` is told of it. */
	request(): { readonly bytes: Uint8Array; readonly owner: number };
	/** What to make of an answer to a request that was sent then, where not only a 200 is right. */
	verdict?(status: number, owner: number, sentAtMs: number): Verdict;
}

/** Fine, refused as it should be, or what is wrong. */
export type Verdict = "fine" | "refused" | { readonly wrong: string };

/** What people felt in a stretch of time. */
export interface Felt {
	readonly firstToken: Histogram;
	/** From a token's departure at the model server to its arrival. */
	readonly token: Histogram;
	/** Between two tokens of a stream that came apart. */
	readonly gap: Histogram;
}

export interface Talk {
	/** Tokens that have arrived so far. */
	tokens(): number;
	/** What was felt since the last call. */
	felt(): Felt;
	/** Hangs up on all that are under way, and begins none. */
	cut(): void;
	/** Resolves when all have ended. */
	readonly ended: Promise<TalkResult>;
}

export interface TalkResult {
	readonly streams: number;
	readonly tokens: number;
	readonly hungUp: number;
	readonly refused: number;
	readonly failures: number;
	readonly firstFailure: string | undefined;
}

interface Stream {
	readonly owner: number;
	readonly sentAtMs: number;
	/** Hung up after so many tokens. */
	readonly leavesAfter: number;
	connection: RawConnection | undefined;
	lastAtMs: number;
	tokens: number;
	sawEnd: boolean;
	/** The usage said something else than what came. */
	isWrong: boolean;
	isOver: boolean;
	carry: string;
}

const CONTENT = '"content":"';
const USAGE = /"completion_tokens": ?(\d+)/;
const PATIENCE_TOKENS_MAX = 60;
const newFelt = (): Felt => ({ firstToken: createHistogram(), token: createHistogram(), gap: createHistogram() });

export function startTalk(options: TalkOptions): Talk {
	const random = createRandom(options.seed);
	const { promise: ended, resolve } = Promise.withResolvers<TalkResult>();
	const counts = { streams: 0, tokens: 0, hungUp: 0, refused: 0, failures: 0 };
	let firstFailure: string | undefined;
	let felt = newFelt();
	let running = options.streams;
	let stopAtMs = sharedMs() + options.durationMs;
	const open = new Set<Stream>();

	function over(stream: Stream, failure: string | undefined): void {
		if (stream.isOver) return;
		stream.isOver = true;
		open.delete(stream);
		stream.connection?.close();
		counts.streams += 1;
		if (failure !== undefined) {
			counts.failures += 1;
			firstFailure ??= failure;
		}
		void next();
	}

	function take(stream: Stream, bytes: Buffer): void {
		if (stream.isOver) return;
		const atMs = sharedMs();
		const text = stream.carry + bytes.toString("latin1");
		let from = 0;
		for (let at = text.indexOf(CONTENT); at !== -1; at = text.indexOf(CONTENT, from)) {
			const stampAt = at + CONTENT.length;
			if (stampAt + STAMP_DIGITS > text.length) {
				stream.carry = text.slice(at);
				return;
			}
			const stamp = Number(text.slice(stampAt, stampAt + STAMP_DIGITS));
			if (stamp > 0) token(stream, atMs, stamp / 1000);
			from = stampAt;
		}
		if (text.includes("[DONE]")) stream.sawEnd = true;
		const usage = USAGE.exec(text)?.[1];
		if (usage !== undefined && Number(usage) !== stream.tokens) stream.isWrong = true;
		stream.carry = text.slice(Math.max(from, text.length - CONTENT.length + 1));
		if (stream.tokens >= stream.leavesAfter && !stream.sawEnd) {
			counts.hungUp += 1;
			over(stream, undefined);
		}
	}

	function token(stream: Stream, atMs: number, leftAtMs: number): void {
		counts.tokens += 1;
		felt.token.add(atMs - leftAtMs);
		if (stream.tokens === 0) felt.firstToken.add(atMs - stream.sentAtMs);
		else if (atMs !== stream.lastAtMs) felt.gap.add(atMs - stream.lastAtMs);
		stream.lastAtMs = atMs;
		stream.tokens += 1;
	}

	function answered(stream: Stream, status: number): void {
		const plain = status === 200 ? "fine" : { wrong: `status ${status}` };
		const verdict = options.verdict?.(status, stream.owner, stream.sentAtMs) ?? plain;
		if (verdict === "refused") counts.refused += 1;
		if (typeof verdict !== "string") over(stream, verdict.wrong);
		else if (verdict === "fine" && !stream.sawEnd) over(stream, "a stream without its end");
		else over(stream, stream.isWrong ? "another number of tokens than the usage says" : undefined);
	}

	async function next(): Promise<void> {
		if (sharedMs() >= stopAtMs) {
			running -= 1;
			if (running === 0) resolve({ ...counts, firstFailure });
			return;
		}
		const { bytes, owner } = options.request();
		const leaves = random.chance(options.hangUpShare);
		const stream: Stream = {
			owner,
			sentAtMs: sharedMs(),
			leavesAfter: leaves ? random.int(1, PATIENCE_TOKENS_MAX) : Number.POSITIVE_INFINITY,
			connection: undefined,
			lastAtMs: 0,
			tokens: 0,
			sawEnd: false,
			isWrong: false,
			isOver: false,
			carry: "",
		};
		open.add(stream);
		try {
			stream.connection = await openConnection(options.port, {
				body: (piece) => take(stream, piece),
				answered: (status) => answered(stream, status),
				broke: (reason) => over(stream, reason),
			});
			if (stream.isOver) stream.connection.close();
			else stream.connection.send(bytes);
		} catch (error) {
			// What listens nowhere is asked again in a moment, and not a million times.
			setTimeout(() => over(stream, String(error)), 100);
		}
	}

	for (let index = 0; index < options.streams; index++) {
		setTimeout(() => void next(), (index / options.streams) * options.rampMs);
	}
	return {
		tokens: () => counts.tokens,
		felt() {
			const before = felt;
			felt = newFelt();
			return before;
		},
		cut() {
			stopAtMs = 0;
			for (const stream of [...open]) {
				counts.hungUp += 1;
				over(stream, undefined);
			}
		},
		ended,
	};
}
