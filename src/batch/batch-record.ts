import { englishText, type Text, type TextValues } from "../base/translate.ts";
import type { RowView } from "../db/statements.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import type { batch } from "./batch.sql.ts";

type Row = RowView<typeof batch, NanoUsd>;
export type BatchState = Row["state"];
export type BatchEnding = NonNullable<Row["ending"]>;

export const BATCH_ENDPOINTS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"] as const;
export type BatchEndpoint = (typeof BATCH_ENDPOINTS)[number];

/** A mistake in the input, or the reason why a batch was stopped. */
export interface BatchProblem {
	/** Error code as in OpenAI's interface: `invalid_json_line`, `duplicate_custom_id`, … */
	readonly code: string;
	readonly message: string;
	/** `message` as a translatable text. */
	readonly text?: Text;
	readonly param: string | null;
	/** Line number in the input, from 1; null for the whole file. */
	readonly line: number | null;
}

/** Creates a problem; the caller adds the line number. `id`: the text's key for translations (`translate.ts`). */
export function toProblem(
	code: string,
	param: string | null,
	id: string,
	values?: TextValues,
): Omit<BatchProblem, "line"> {
	if (values === undefined) return { code, param, message: id };
	return { code, param, message: englishText({ id, values }), text: { id, values } };
}

export interface BatchPause {
	/** Code of the fault that makes the batch wait. */
	readonly code: string;
	readonly message: string;
	readonly sinceMs: number;
}

/** Tokens and charges of a batch's lines, as the model servers reported them. */
export type BatchUsage = Pick<
	Row,
	"promptTokens" | "cachedTokens" | "completionTokens" | "reasoningTokens" | "chargedNanoUsd"
>;

export type BatchCounts = Pick<Row, "total" | "completed" | "failed">;

/** A batch. Times are Unix milliseconds; null until the event has happened. */
export interface BatchRecord extends Omit<Row, "endpoint" | "metadata" | "paused" | "errors" | "idempotencyKey"> {
	readonly endpoint: BatchEndpoint;
	readonly metadata: Readonly<Record<string, string>> | null;
	readonly paused: BatchPause | null;
	readonly errors: readonly BatchProblem[] | null;
}

export function hasBatchEnded(state: BatchState): boolean {
	return state === "completed" || state === "failed" || state === "expired" || state === "cancelled";
}
