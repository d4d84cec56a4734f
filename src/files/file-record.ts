/** Purposes: `batch` is uploaded, `batch_output` is written by the service. */
export type FilePurpose = "batch" | "batch_output";

/** All keys of an account share its files. */
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
	/** When it disappears; it is deleted soon after. */
	readonly expiresAtMs: number;
	readonly store: string;
}
