/** Files and their lists as schemas. */
import { Type } from "@sinclair/typebox";
import { Count, exact, oneOf, orNull, Seconds } from "./openapi-words.ts";

export const File = exact({
	id: Type.String(),
	object: Type.Literal("file"),
	bytes: Count,
	created_at: Seconds,
	expires_at: Seconds,
	filename: Type.String(),
	purpose: oneOf("batch", "batch_output"),
	status: Type.Literal("processed"),
});
export const FileList = exact({
	object: Type.Literal("list"),
	data: Type.Array(File),
	first_id: orNull(Type.String()),
	last_id: orNull(Type.String()),
	has_more: Type.Boolean(),
});
export const FileDeleted = exact({ id: Type.String(), object: Type.Literal("file"), deleted: Type.Literal(true) });

/** The form of an upload, its fields in any order. */
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
