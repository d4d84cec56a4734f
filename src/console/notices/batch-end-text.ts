import { assert } from "../../base/assert.ts";
import type { KnownText, TextId } from "../../base/translate.ts";
import type { BatchRecord } from "../../batch/batch-record.ts";
import { formatUsd } from "../../money/nano-usd.ts";

const ENDINGS: Readonly<Record<string, TextId>> = {
	completed: "The batch {id} is completed.",
	failed: "The batch {id} has failed.",
	expired: "The batch {id} has expired: its 24-hour window ended before it was completed.",
	cancelled: "The batch {id} was cancelled.",
};

/** Id of the notice, equal for all attempts and receivers. */
export const noticeId = (batchId: string): string => batchId.replace(/^batch_/, "evt_");

/** Webhook body in the format of OpenAI's events, with the batch's results in `data`. Times are Unix seconds. */
export function batchEndEvent(batch: BatchRecord): string {
	const endedAt = seconds(endedAtMs(batch));
	return JSON.stringify({
		id: noticeId(batch.id),
		object: "event",
		created_at: endedAt,
		type: `batch.${batch.state}`,
		data: {
			id: batch.id,
			status: batch.state,
			endpoint: batch.endpoint,
			model: batch.model,
			request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
			cost_usd: formatUsd(batch.chargedNanoUsd),
			input_file_id: batch.inputFileId,
			output_file_id: batch.outputFileId,
			error_file_id: batch.errorFileId,
			created_at: seconds(batch.createdAtMs),
			ended_at: endedAt,
		},
	});
}

export function batchEndMail(batch: BatchRecord, service: string, origin: string) {
	const { id, total, completed, failed } = batch;
	const link = `${origin}/batches/${id}`;
	const ending = ENDINGS[batch.state];
	assert(ending !== undefined, "a batch is told of once it is over");
	const lines: KnownText =
		total === 0
			? { id: "No line was sent." }
			: {
					id: "Lines: {total}, completed: {completed}, failed: {failed}. Cost: USD {cost}.",
					values: { total, completed, failed, cost: formatUsd(batch.chargedNanoUsd) },
				};
	const settings = { link: `${origin}/settings` };
	return {
		...{ id: noticeId(id), link },
		subject: { id: "A batch at {service} has ended", values: { service } } as const,
		paragraphs: [
			{ id: ending, values: { id } },
			...[lines, link],
			{
				id: "Your account sends this mail at the end of each batch. Change this in the settings: {link}",
				values: settings,
			},
		] as const,
	};
}

function endedAtMs(batch: BatchRecord): number {
	return batch.completedAtMs ?? batch.failedAtMs ?? batch.expiredAtMs ?? batch.cancelledAtMs ?? batch.createdAtMs;
}

const seconds = (ms: number): number => Math.floor(ms / 1000);
