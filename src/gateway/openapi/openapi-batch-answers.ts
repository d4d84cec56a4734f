/** Schemas of files and batches. */
import { Type } from "@sinclair/typebox";
import { Count, each, exact, oneOf, orNull, Seconds, Text, Usd } from "./openapi-words.ts";

const listOf = <T extends ReturnType<typeof exact>>(data: T) =>
	exact({
		object: Type.Literal("list"),
		data: Type.Array(data),
		...each(orNull(Text), "first_id", "last_id"),
		has_more: Type.Boolean(),
	});

export const Batch = exact({
	id: Text,
	object: Type.Literal("batch"),
	endpoint: Text,
	model: orNull(Text),
	errors: orNull(
		exact({
			object: Type.Literal("list"),
			data: Type.Array(exact({ ...each(Text, "code", "message"), param: orNull(Text), line: orNull(Count) })),
		}),
	),
	...each(Text, "input_file_id", "completion_window"),
	status: oneOf("validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"),
	...each(orNull(Text), "output_file_id", "error_file_id"),
	...each(Seconds, "created_at", "expires_at"),
	...each(orNull(Seconds), "in_progress_at", "finalizing_at", "completed_at", "failed_at", "expired_at"),
	...each(orNull(Seconds), "cancelling_at", "cancelled_at"),
	request_counts: exact(each(Count, "total", "completed", "failed")),
	usage: exact({
		...each(Count, "input_tokens", "output_tokens", "total_tokens"),
		input_tokens_details: exact({ cached_tokens: Count }),
		output_tokens_details: exact({ reasoning_tokens: Count }),
	}),
	metadata: orNull(Type.Record(Text, Text)),
	paused: orNull(exact({ code: Text, message: Text, since: Seconds })),
	cost_usd: Usd,
});

export const BatchList = listOf(Batch);

export const File = exact({
	id: Text,
	object: Type.Literal("file"),
	bytes: Count,
	...each(Seconds, "created_at", "expires_at"),
	filename: Text,
	purpose: oneOf("batch", "batch_output"),
	status: Type.Literal("processed"),
});
export const FileList = listOf(File);
export const FileDeleted = exact({ id: Text, object: Type.Literal("file"), deleted: Type.Literal(true) });

/** Form of an upload, its fields in any order. */
export const FileUpload = {
	type: "object",
	properties: {
		file: {
			description: "Lines of JSON (JSONL), a request on each.",
			contentMediaType: "application/octet-stream",
		},
		purpose: { type: "string", enum: ["batch"] },
		"expires_after[anchor]": { type: "string", enum: ["created_at"] },
		"expires_after[seconds]": {
			type: "string",
			pattern: "^\\d+$",
			description: "From 3600 to 2592000, which is 30 days and what holds without it.",
		},
	},
	required: ["file", "purpose"],
};
