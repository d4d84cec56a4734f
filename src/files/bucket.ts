import { type BunFile, S3Client } from "bun";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { EnvironmentReader } from "../base/environment-reader.ts";

/** An S3-compatible service and its access key. */
export interface S3Account {
	/** URL of the service; null: Amazon's URL for the region. */
	readonly endpoint: string | null;
	readonly region: string | null;
	readonly accessKeyId: string;
	readonly secretAccessKey: string;
}

export interface S3Bucket extends S3Account {
	readonly bucket: string;
}

const RENAMED: Readonly<Record<string, string>> = {
	...Object.fromEntries(
		["ENDPOINT", "REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"].flatMap((name) =>
			["FILE", "ARCHIVE"].map((use) => [`${use}_S3_${name}`, `S3_${name}`]),
		),
	),
	FILE_S3_BUCKET: "S3_BUCKET",
};

/** Reads the `S3_…` variables; null without an access key. `note` records problems. */
export function readS3Account(read: EnvironmentReader, note: (problem: string) => void): S3Account | null {
	for (const [former, name] of Object.entries(RENAMED)) if (read.isSet(former)) note(`${former} is called ${name} now`);
	const endpoint = read.url("S3_ENDPOINT", ["http:", "https:"])?.replace(/\/+$/, "") ?? null;
	const region = read.text("S3_REGION");
	const accessKeyId = read.text("S3_ACCESS_KEY_ID");
	const secretAccessKey = read.text("S3_SECRET_ACCESS_KEY");
	if (accessKeyId === null || secretAccessKey === null) return null;
	return { endpoint, region, accessKeyId, secretAccessKey };
}

/** Reads and writes objects of a bucket by key. Calls reject after `deadlineMs`, and when `signal` aborts. */
export function openBucket(
	{ clock, signal }: { clock: Clock; signal?: AbortSignal | undefined },
	{ endpoint, region, ...options }: S3Bucket,
	deadlineMs: number,
) {
	const client = new S3Client({
		...options,
		...(endpoint === null ? {} : { endpoint }),
		...(region === null ? {} : { region }),
	});
	async function inTime<Result>(work: Promise<Result>): Promise<Result> {
		const stopped = Promise.withResolvers<never>();
		const stop = () => stopped.reject(signal?.reason);
		signal?.addEventListener("abort", stop);
		try {
			const late = () => new Error("the object storage did not answer in time");
			return await withDeadline(clock, Promise.race([work, stopped.promise]), deadlineMs, late);
		} finally {
			signal?.removeEventListener("abort", stop);
		}
	}
	return {
		/** The object becomes visible only after all its bytes have arrived. */
		async put(key: string, data: Uint8Array | BunFile): Promise<void> {
			await inTime(client.write(key, data as Uint8Array<ArrayBuffer> | BunFile));
		},
		/** Bytes from `start` to before `end`, or fewer at the object's end; undefined if there is no such object. */
		read: (key: string, start: number, end: number): Promise<Uint8Array | undefined> =>
			inTime(client.file(key).slice(start, end).bytes()).catch(undefinedIfMissing),
		async download(key: string, path: string): Promise<void> {
			await inTime(Bun.write(path, client.file(key)));
		},
		exists: (key: string) => inTime(client.exists(key)),
		/** True if the bucket lists the object with at least `bytes`: a proxy may answer a read with a wrong 404. */
		async isListed(key: string, bytes: number): Promise<boolean> {
			const { contents = [] } = await inTime(client.list({ prefix: key, maxKeys: 1 }));
			return contents.some((object) => object.key === key && (object.size ?? bytes) >= bytes);
		},
		/** All keys with the prefix. Rejects if the service lists other keys or repeats a key, which might never end. */
		async keys(prefix: string): Promise<readonly string[]> {
			const keys = new Set<string>();
			for (let startAfter: string | undefined; ; ) {
				const page = await inTime(client.list({ prefix, ...(startAfter === undefined ? {} : { startAfter }) }));
				for (const { key } of page.contents ?? []) {
					if (!key.startsWith(prefix) || keys.has(key))
						throw new Error("the object storage lists what it was not asked for");
					keys.add(key);
				}
				startAfter = page.contents?.at(-1)?.key;
				if (page.isTruncated !== true || startAfter === undefined) return [...keys];
			}
		},
		async delete(key: string): Promise<void> {
			await inTime(client.delete(key));
		},
	};
}

/** Undefined only for a missing key. If the bucket is missing, the object may still exist. */
function undefinedIfMissing(error: unknown): undefined {
	if ((error as { code?: unknown }).code !== "NoSuchKey") throw error;
}
