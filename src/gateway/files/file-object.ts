import type { FileRecord } from "../../files/file-record.ts";

export type FileObject = ReturnType<typeof fileObject>;

/** A file in OpenAI's format. */
export function fileObject(record: FileRecord) {
	return {
		id: record.id,
		object: "file",
		bytes: record.bytes,
		/** Unix seconds. */
		created_at: Math.floor(record.createdAtMs / 1000),
		/** Unix seconds; every file expires. */
		expires_at: Math.floor(record.expiresAtMs / 1000),
		filename: record.filename,
		purpose: record.purpose,
		/** Deprecated, but SDKs read it. */
		status: "processed",
	};
}
