/** `batch`: uploaded by a customer; `batch_output`: written by the service. */
export type FilePurpose = "batch" | "batch_output";

/** Owner of a file: an account. All of the account's keys can use the file. */
export interface FileOwner {
	readonly accountId: string;
	readonly keyId: string;
}

/** A complete file. Its bytes never change. */
export interface FileRecord extends FileOwner {
	/** `file_…`, sortable by time. */
	readonly id: string;
	readonly purpose: FilePurpose;
	readonly filename: string;
	readonly bytes: number;
	readonly createdAtMs: number;
	/** Time of expiry; the bytes are deleted soon after it. */
	readonly expiresAtMs: number;
	readonly store: string;
}
