import { resolve } from "node:path";
import type { EnvironmentReader } from "../base/environment-reader.ts";
import type { ArchiveAddress } from "./archive-place.ts";

const S3_ADDRESS = /^s3:\/\/([^/\s]+)(?:\/([^\s]*))?$/;

/** What `ARCHIVE` says: a folder, or `s3://bucket/prefix` with the two keys of its own. Null if it is not set. */
export function readArchiveSettings(
	read: EnvironmentReader,
	note: (problem: string) => void,
	cwd: string,
): ArchiveAddress | null {
	const place = read.text("ARCHIVE");
	const keys = {
		endpoint: read.url("ARCHIVE_S3_ENDPOINT", ["http:", "https:"])?.replace(/\/+$/, "") ?? null,
		region: read.text("ARCHIVE_S3_REGION"),
		accessKeyId: read.text("ARCHIVE_S3_ACCESS_KEY_ID"),
		secretAccessKey: read.text("ARCHIVE_S3_SECRET_ACCESS_KEY"),
	};
	return place === null ? null : addressOf(place, keys, note, cwd);
}

type Keys = {
	readonly endpoint: string | null;
	readonly region: string | null;
	readonly accessKeyId: string | null;
	readonly secretAccessKey: string | null;
};

function addressOf(place: string, keys: Keys, note: (problem: string) => void, cwd: string): ArchiveAddress | null {
	if (!place.startsWith("s3:")) return { folder: resolve(cwd, place) };
	const [, bucket, path = ""] = S3_ADDRESS.exec(place) ?? [];
	const { accessKeyId, secretAccessKey } = keys;
	if (bucket === undefined) note("ARCHIVE must be a folder or s3://bucket/prefix");
	else if (accessKeyId === null || secretAccessKey === null)
		note("ARCHIVE_S3_ACCESS_KEY_ID and ARCHIVE_S3_SECRET_ACCESS_KEY are required with an ARCHIVE in a bucket");
	else {
		const prefix = path === "" || path.endsWith("/") ? path : `${path}/`;
		return { bucket: { ...keys, bucket, accessKeyId, secretAccessKey }, prefix };
	}
	return null;
}
