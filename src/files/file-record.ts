/** What files are for: `batch` is uploaded, `batch_output` is what the service writes. */
export type FilePurpose = "batch" | "batch_output";

/** Whose a file is: all keys of an account share its files. */
export interface FileOwner {
	readonly accountId: string;
	/** Whose request makes it. */
	readonly keyId: string;
}

/** A file that is whole. Its bytes never change. */
export interface FileRecord extends FileOwner {
	/** `file_…`, sorted by time. */
	readonly id: string;
	readonly purpose: FilePurpose;
	readonly filename: string;
	readonly bytes: number;
	readonly createdAtMs: number;
	/** From then on it is not found, and soon after deleted. */
	readonly expiresAtMs: number;
	/** Where its bytes lie. */
	readonly store: string;
}
