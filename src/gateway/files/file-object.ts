import type { FileRecord } from "../../files/file-record.ts";

/** A file in OpenAI's format. */
export interface FileObject {
	readonly id: string;
	readonly object: "file";
	readonly bytes: number;
	/** Unix seconds. */
	readonly created_at: number;
	/** Unix seconds; every file expires. */
	readonly expires_at: number;
	readonly filename: string;
	readonly purpose: string;
	/** Deprecated, but SDKs read it. */
	readonly status: "processed";
}

export function fileObject(record: FileRecord): FileObject {
	return {
		id: record.id,
		object: "file",
		bytes: record.bytes,
		created_at: Math.floor(record.createdAtMs / 1000),
		expires_at: Math.floor(record.expiresAtMs / 1000),
		filename: record.filename,
		purpose: record.purpose,
		status: "processed",
	};
}
