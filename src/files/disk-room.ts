import { statfsSync } from "node:fs";
import { Fault } from "../base/fault.ts";

const GIB = 1024 ** 3;
/** Space that the journal and an embedded Postgres need. On disks below 20 GiB it is RESERVE_SHARE of the disk. */
const RESERVE_BYTES = GIB;
const RESERVE_SHARE = 1 / 20;
/** Operators are warned if the free space is less than this many reserves. */
const WARNING_RESERVES = 4;

export type DiskRoom = ReturnType<typeof createDiskRoom>;

/** The disk of DATA_DIR. Uploads stop at its reserve; operators are warned long before. */
export function createDiskRoom(
	folder: string,
	statfs: (path: string) => { readonly bsize: number; readonly blocks: number; readonly bavail: number } = statfsSync,
) {
	/** Free space minus `bytes`, as a multiple of the reserve. */
	function reserves(bytes = 0): number {
		const { bsize, blocks, bavail } = statfs(folder);
		return (bsize * bavail - bytes) / Math.min(RESERVE_BYTES, bsize * blocks * RESERVE_SHARE);
	}
	return {
		reserves,
		/** Fault service_unavailable if an upload of `bytes` more would use the reserve. */
		check(bytes: number): void {
			if (reserves(bytes) < 1)
				throw new Fault("service_unavailable", "The service has no space for files at the moment. Try again later.", {
					retryAfterS: 60,
					private: "the disk of DATA_DIR is at its reserve: free space",
				});
		},
		/** Warning for `/readyz`. */
		problem: () =>
			reserves() < WARNING_RESERVES ? "the disk of DATA_DIR is nearly full: uploads of files stop soon" : undefined,
	};
}
