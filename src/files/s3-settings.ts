import type { EnvironmentReader } from "../base/environment-reader.ts";
import type { S3Bucket } from "./s3-blobs.ts";

/** Null if no bucket is given, or not all that it needs. */
export function readS3Settings(read: EnvironmentReader): S3Bucket | null {
	const endpoint = read.url("FILE_S3_ENDPOINT", ["http:", "https:"])?.replace(/\/+$/, "") ?? null;
	const region = read.text("FILE_S3_REGION");
	const bucket = read.text("FILE_S3_BUCKET");
	const accessKeyId = read.text("FILE_S3_ACCESS_KEY_ID");
	const secretAccessKey = read.text("FILE_S3_SECRET_ACCESS_KEY");
	if (bucket === null || accessKeyId === null || secretAccessKey === null) return null;
	return { endpoint, region, bucket, accessKeyId, secretAccessKey };
}
