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

export type BatchEnding = "completed" | "expired" | "cancelled" | "failed";

export const BATCH_ENDPOINTS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"] as const;
export type BatchEndpoint = (typeof BATCH_ENDPOINTS)[number];

/** A mistake in the input, or why a batch was stopped. */
export interface BatchProblem {
	/** A code of OpenAI's interface: `invalid_json_line`, `duplicate_custom_id`, … */
	readonly code: string;
	readonly message: string;
	/** Parameters of `message`. */
	readonly text?: Text;
	readonly param: string | null;
	/** Line number in the input, from 1; null for the whole file. */
	readonly line: number | null;
}

/** A problem without its line. `id` names its text in the catalogue (`translate.ts`). */
export function problemOf(
	code: string,
	param: string | null,
	id: string,
	values?: TextValues,
): Omit<BatchProblem, "line"> {
	if (values === undefined) return { code, param, message: id };
	return { code, param, message: inEnglish({ id, values }), text: { id, values } };
}

/** Why a batch is paused. */
export interface BatchPause {
	/** The code of the fault that its lines get. */
	readonly code: string;
	readonly message: string;
	readonly sinceMs: number;
}

/** Tokens and charge of a batch's lines, by the upstream's count. */
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

/** A batch. Times are Unix milliseconds, null until they happen. */
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
