import type { Clock } from "../../base/clock.ts";
import { type CachedPrefix, PrefixIndex } from "./prefix-index.ts";
import { charsOfBlocks, type RoutedPrompt } from "./prompt-prefix.ts";

export interface SentPrompt {
	readonly prompt: RoutedPrompt;
	readonly found: CachedPrefix;
	readonly uncachedChars: number;
	/** True once the first token has arrived. */
	isStarted: boolean;
}

/** Assumed speed of a replica before its first token: about 10,000 tokens a second. */
const UNKNOWN_CHARS_PER_MS = 40;
/** Factor for the weight of earlier prompts at each new one, so that about thirty prompts determine the speed. */
const KEPT_SHARE = 0.97;
/** Part of an overdue first token's delay that is added to the wait: other gateways may have sent long prompts. */
const OVERDUE_SHARE = 0.5;

/**
 * Estimates when a replica starts a prompt: after the uncached characters that this gateway sent earlier and that have
 * no first token yet. Servers process prompts in the order of arrival, so a first token shows that all earlier prompts
 * are processed. Unstreamed answers do not show their first token and are assumed to be on time.
 */
export function createPrefill(clock: Pick<Clock, "monotonicMs">) {
	const index = new PrefixIndex();
	/** Prompts in the order of arrival, except those that are processed according to a first token. */
	const queue = new Set<SentPrompt>();
	let queuedChars = 0;
	const speed = { chars: 0, ms: 0 };
	let silentStreams = 0;
	/** Time of the last first token, or since when the replica has work. */
	let progressAtMs = 0;
	let freeAtMs = 0;

	const msPerChar = () => (speed.ms === 0 ? 1 / UNKNOWN_CHARS_PER_MS : speed.ms / speed.chars);

	function waitMs(nowMs = clock.monotonicMs()): number {
		const overdueMs = silentStreams > 0 ? (nowMs - progressAtMs) * OVERDUE_SHARE : 0;
		return Math.max(freeAtMs - nowMs, overdueMs, 0);
	}

	/**
	 * Removes a prompt, and all earlier ones if it was processed, because servers process prompts in order. Returns the
	 * number of uncached characters of the removed prompts.
	 */
	function leave(sent: SentPrompt, isProcessed: boolean): number {
		let chars = 0;
		if (!queue.has(sent)) return chars;
		for (const one of isProcessed ? queue : [sent]) {
			queue.delete(one);
			chars += one.uncachedChars;
			if (one === sent) break;
		}
		queuedChars -= chars;
		return chars;
	}

	function progress(nowMs: number): void {
		progressAtMs = nowMs;
		freeAtMs = nowMs + queuedChars * msPerChar();
	}

	return {
		index,
		waitMs,
		msPerChar,
		/** Streams without first token. */
		waiting: (): number => silentStreams,
		/** Call it when a prompt is sent. */
		begin(prompt: RoutedPrompt): SentPrompt {
			const found = index.add(prompt.hashes);
			const nowMs = clock.monotonicMs();
			if (queuedChars === 0) progressAtMs = nowMs;
			const uncachedChars = prompt.chars - charsOfBlocks(found.blocks);
			queuedChars += uncachedChars;
			freeAtMs = Math.max(freeAtMs, nowMs) + uncachedChars * msPerChar();
			if (prompt.streamed) silentStreams += 1;
			const sent = { prompt, found, uncachedChars, isStarted: false };
			queue.add(sent);
			return sent;
		},
		/** Call it when the first token of a stream has arrived. */
		started(sent: SentPrompt): void {
			sent.isStarted = true;
			silentStreams -= 1;
			const chars = leave(sent, true);
			if (chars === 0) return;
			const nowMs = clock.monotonicMs();
			speed.chars = speed.chars * KEPT_SHARE + chars;
			speed.ms = speed.ms * KEPT_SHARE + Math.max(nowMs - progressAtMs, Number.MIN_VALUE);
			progress(nowMs);
		},
		/** Call it when the call is over. `cachedShare`: reported cached part of the prompt; undefined without a report. */
		ended(sent: SentPrompt, isAnswered: boolean, cachedShare: number | undefined): void {
			if (!sent.isStarted) {
				if (sent.prompt.streamed) silentStreams -= 1;
				if (leave(sent, isAnswered) > 0) progress(isAnswered ? clock.monotonicMs() : progressAtMs);
			}
			if (cachedShare !== undefined) index.learn(sent.found, sent.prompt.chars, cachedShare);
		},
	};
}
