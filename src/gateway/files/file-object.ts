import type { FileRecord } from "../../files/file-record.ts";

/** A file as clients of OpenAI's interface know it. */
export interface FileObject {
	readonly id: string;
	readonly object: "file";
	readonly bytes: number;
	/** Unix seconds. */
	readonly created_at: number;
	/** Unix seconds; every file ends. */
	readonly expires_at: number;
	readonly filename: string;
	readonly purpose: string;
	/** Of no meaning any more, and still asked for by SDKs. */
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
