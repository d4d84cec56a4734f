import { formatUsd } from "../money/nano-usd.ts";
import { type BatchProblem, type BatchRecord, isOver } from "./batch-record.ts";

/** A batch in OpenAI's format, with two fields of Tollgate's. Times are Unix seconds. */
export interface BatchView {
	readonly id: string;
	readonly object: "batch";
	readonly endpoint: string;
	readonly model: string | null;
	readonly errors: { readonly object: "list"; readonly data: readonly BatchProblem[] } | null;
	readonly input_file_id: string;
	readonly completion_window: string;
	readonly status: string;
	readonly output_file_id: string | null;
	readonly error_file_id: string | null;
	readonly created_at: number;
	readonly in_progress_at: number | null;
	readonly expires_at: number;
	readonly finalizing_at: number | null;
	readonly completed_at: number | null;
	readonly failed_at: number | null;
	readonly expired_at: number | null;
	readonly cancelling_at: number | null;
	readonly cancelled_at: number | null;
	readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
	readonly usage: {
		readonly input_tokens: number;
		readonly input_tokens_details: { readonly cached_tokens: number };
		readonly output_tokens: number;
		readonly output_tokens_details: { readonly reasoning_tokens: number };
		readonly total_tokens: number;
	};
	readonly metadata: Readonly<Record<string, string>> | null;
	/** Why the batch is paused, or null. Not OpenAI's. */
	readonly paused: { readonly code: string; readonly message: string; readonly since: number } | null;
	/** Cost of its lines so far: US dollars as a decimal string. Not OpenAI's. */
	readonly cost_usd: string;
}

/** Without fields that only the console reads. */
const shown = ({ code, message, param, line }: BatchProblem): BatchProblem => ({ code, message, param, line });

export function batchView(batch: BatchRecord): BatchView {
	const over = isOver(batch.state);
	return {
		id: batch.id,
		object: "batch",
		endpoint: batch.endpoint,
		model: batch.model,
		errors: batch.errors === null ? null : { object: "list", data: batch.errors.map(shown) },
		input_file_id: batch.inputFileId,
		completion_window: batch.completionWindow,
		status: batch.state,
		output_file_id: over ? batch.outputFileId : null,
		error_file_id: over ? batch.errorFileId : null,
		created_at: seconds(batch.createdAtMs),
		in_progress_at: secondsOrNull(batch.inProgressAtMs),
		expires_at: seconds(batch.expiresAtMs),
		finalizing_at: secondsOrNull(batch.finalizingAtMs),
		completed_at: secondsOrNull(batch.completedAtMs),
		failed_at: secondsOrNull(batch.failedAtMs),
		expired_at: secondsOrNull(batch.expiredAtMs),
		cancelling_at: secondsOrNull(batch.cancellingAtMs),
		cancelled_at: secondsOrNull(batch.cancelledAtMs),
		request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
		usage: {
			input_tokens: batch.promptTokens,
			input_tokens_details: { cached_tokens: batch.cachedTokens },
			output_tokens: batch.completionTokens,
			output_tokens_details: { reasoning_tokens: batch.reasoningTokens },
			total_tokens: batch.promptTokens + batch.completionTokens,
		},
		metadata: batch.metadata,
		paused:
			batch.paused === null
				? null
				: { code: batch.paused.code, message: batch.paused.message, since: seconds(batch.paused.sinceMs) },
		cost_usd: formatUsd(batch.chargedNanoUsd),
	};
}

function seconds(ms: number): number {
	return Math.floor(ms / 1000);
}

function secondsOrNull(ms: number | null): number | null {
	return ms === null ? null : seconds(ms);
}
