import { inEnglish, type Text, type TextValues } from "../base/translate.ts";
import type { NanoUsd } from "../money/nano-usd.ts";

export type BatchState =
	| "validating"
	| "failed"
	| "in_progress"
	| "finalizing"
	| "completed"
	| "expired"
	| "cancelling"
	| "cancelled";

/** How a batch can end. */
export type BatchEnding = "completed" | "expired" | "cancelled" | "failed";

/** What lines can ask for. */
export const BATCH_ENDPOINTS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"] as const;
export type BatchEndpoint = (typeof BATCH_ENDPOINTS)[number];

/** What is wrong with an input, or why a batch was stopped. */
export interface BatchProblem {
	/** As users of OpenAI's interface know them: `invalid_json_line`, `duplicate_custom_id`, … */
	readonly code: string;
	/** In English. */
	readonly message: string;
	/** What `message` says, where it has values. */
	readonly text?: Text;
	readonly param: string | null;
	/** Of the input file, 1 the first; null where it is about the whole. */
	readonly line: number | null;
}

/** A problem without its line. `id` is that of a text (`translate.ts`). */
export function problemOf(
	code: string,
	param: string | null,
	id: string,
	values?: TextValues,
): Omit<BatchProblem, "line"> {
	if (values === undefined) return { code, param, message: id };
	return { code, param, message: inEnglish({ id, values }), text: { id, values } };
}

/** Why a batch does not go on at the moment. */
export interface BatchPause {
	/** Of the fault that its lines meet. */
	readonly code: string;
	readonly message: string;
	readonly sinceMs: number;
}

/** What the lines of a batch used, by the upstream's own count. */
export interface BatchUsage {
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly completionTokens: number;
	readonly reasoningTokens: number;
	readonly chargedNanoUsd: NanoUsd;
}

export interface BatchCounts {
	readonly total: number;
	readonly completed: number;
	readonly failed: number;
}

/** A batch as it stands. Times are Unix milliseconds, null until they are there. */
export interface BatchRecord extends BatchCounts, BatchUsage {
	readonly id: string;
	readonly accountId: string;
	readonly keyId: string;
	readonly endpoint: BatchEndpoint;
	readonly inputFileId: string;
	readonly completionWindow: string;
	readonly metadata: Readonly<Record<string, string>> | null;
	readonly outputExpiresS: number | null;
	readonly state: BatchState;
	readonly ending: BatchEnding | null;
	readonly run: number;
	readonly model: string | null;
	readonly paused: BatchPause | null;
	readonly errors: readonly BatchProblem[] | null;
	readonly outputFileId: string | null;
	readonly errorFileId: string | null;
	readonly createdAtMs: number;
	readonly expiresAtMs: number;
	readonly inProgressAtMs: number | null;
	readonly finalizingAtMs: number | null;
	readonly completedAtMs: number | null;
	readonly failedAtMs: number | null;
	readonly expiredAtMs: number | null;
	readonly cancellingAtMs: number | null;
	readonly cancelledAtMs: number | null;
}

export function isOver(state: BatchState): boolean {
	return state === "completed" || state === "failed" || state === "expired" || state === "cancelled";
}
