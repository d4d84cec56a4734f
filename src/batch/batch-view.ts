import { formatUsd } from "../money/nano-usd.ts";
import { type BatchProblem, type BatchRecord, hasBatchEnded } from "./batch-record.ts";

/** A problem without the field `text`, which only the console reads. */
const shown = ({ code, message, param, line }: BatchProblem): BatchProblem => ({ code, message, param, line });

export type BatchView = ReturnType<typeof batchView>;

/** A batch in OpenAI's format with two additional fields, `paused` and `cost_usd`. Times are Unix seconds. */
export function batchView(batch: BatchRecord) {
	const over = hasBatchEnded(batch.state);
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
		paused: batch.paused && {
			code: batch.paused.code,
			message: batch.paused.message,
			since: seconds(batch.paused.sinceMs),
		},
		cost_usd: formatUsd(batch.chargedNanoUsd),
	};
}

const seconds = (ms: number): number => Math.floor(ms / 1000);

const secondsOrNull = (ms: number | null): number | null => (ms === null ? null : seconds(ms));
