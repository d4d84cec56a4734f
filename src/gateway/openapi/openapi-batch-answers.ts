/** Managed batches as schemas. */
import { Type } from "@sinclair/typebox";
import { Count, exact, oneOf, orNull, Seconds, Usd } from "./openapi-words.ts";

const moment = orNull(Seconds);

export const Batch = exact({
	id: Type.String(),
	object: Type.Literal("batch"),
	endpoint: Type.String(),
	model: orNull(Type.String()),
	errors: orNull(
		exact({
			object: Type.Literal("list"),
			data: Type.Array(
				exact({
					code: Type.String(),
					message: Type.String(),
					param: orNull(Type.String()),
					line: orNull(Count),
				}),
			),
		}),
	),
	input_file_id: Type.String(),
	completion_window: Type.String(),
	status: oneOf("validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"),
	output_file_id: orNull(Type.String()),
	error_file_id: orNull(Type.String()),
	created_at: Seconds,
	in_progress_at: moment,
	expires_at: Seconds,
	finalizing_at: moment,
	completed_at: moment,
	failed_at: moment,
	expired_at: moment,
	cancelling_at: moment,
	cancelled_at: moment,
	request_counts: exact({ total: Count, completed: Count, failed: Count }),
	usage: exact({
		input_tokens: Count,
		input_tokens_details: exact({ cached_tokens: Count }),
		output_tokens: Count,
		output_tokens_details: exact({ reasoning_tokens: Count }),
		total_tokens: Count,
	}),
	metadata: orNull(Type.Record(Type.String(), Type.String())),
	paused: orNull(exact({ code: Type.String(), message: Type.String(), since: Seconds })),
	cost_usd: Usd,
});

export const BatchList = exact({
	object: Type.Literal("list"),
	data: Type.Array(Batch),
	first_id: orNull(Type.String()),
	last_id: orNull(Type.String()),
	has_more: Type.Boolean(),
});
