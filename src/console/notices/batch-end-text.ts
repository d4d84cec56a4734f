import type { BatchRecord } from "../../batch/batch-record.ts";
import { formatUsd } from "../../money/nano-usd.ts";

/** What is told of a batch that is over: ids, counts, states and cost. Nothing that somebody wrote stands in it. */

const ENDINGS: Readonly<Record<string, string>> = {
	completed: "is completed",
	failed: "has failed",
	expired: "has expired: its window of a day ended before it did",
	cancelled: "was cancelled",
};

/** The same at each attempt, and for each receiver. */
export function noticeId(batchId: string): string {
	return batchId.replace(/^batch_/, "evt_");
}

/** An event as users of OpenAI's webhooks know it, with what the batch came to in `data`. Times are Unix seconds. */
export function endEvent(batch: BatchRecord): string {
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

/** The body of a mail. `origin`: where people reach the service. */
export function endMailText(batch: BatchRecord, origin: string): string {
	const { id, total, completed, failed } = batch;
	return [
		`The batch ${id} ${ENDINGS[batch.state] ?? batch.state}.`,
		"",
		total === 0
			? "None of its lines was sent."
			: `Lines: ${total}, answered: ${completed}, failed: ${failed}. Cost: USD ${formatUsd(batch.chargedNanoUsd)}.`,
		"",
		`${origin}/batches/${id}`,
		"",
		`You get this mail because your account asks for one at the end of each batch: ${origin}/settings`,
		"",
	].join("\n");
}

const GERMAN_ENDINGS: Readonly<Record<string, string>> = {
	completed: "ist abgeschlossen",
	failed: "ist fehlgeschlagen",
	expired: "ist abgelaufen: Seine Frist von einem Tag endete vor ihm",
	cancelled: "wurde abgebrochen",
};

export function germanEndMailText(batch: BatchRecord, origin: string): string {
	const { id, total, completed, failed } = batch;
	return [
		`Der Stapel ${id} ${GERMAN_ENDINGS[batch.state] ?? batch.state}.`,
		"",
		total === 0
			? "Keine seiner Zeilen wurde gesendet."
			: `Zeilen: ${total}, beantwortet: ${completed}, fehlgeschlagen: ${failed}. Kosten: USD ${formatUsd(batch.chargedNanoUsd).replace(".", ",")}.`,
		"",
		`${origin}/batches/${id}`,
		"",
		`Sie erhalten diese E-Mail, weil Ihr Konto eine am Ende jedes Stapels verlangt: ${origin}/settings`,
		"",
	].join("\n");
}

function endedAtMs(batch: BatchRecord): number {
	return batch.completedAtMs ?? batch.failedAtMs ?? batch.expiredAtMs ?? batch.cancelledAtMs ?? batch.createdAtMs;
}

function seconds(ms: number): number {
	return Math.floor(ms / 1000);
}
