import { resolve } from "node:path";
import type { EnvironmentReader } from "../base/environment-reader.ts";
import type { S3Account } from "../files/bucket.ts";
import type { ArchiveAddress } from "./archive-place.ts";

/** Days for which rows are kept; 0: for ever. README.md gives the reason of each minimum. */
export interface RetentionSettings {
	/** Archive to which sealed days are written before their requests are deleted; null: none. */
	readonly archive: ArchiveAddress | null;
	/** Days for which settled requests are kept. Their hourly sums are never deleted. */
	readonly usageDays: number;
	readonly auditDays: number;
	readonly refusalDays: number;
}

const DAYS_MAX = 36_500;
/** Minimum number of days for settled requests: journals that arrive late must be charged, and past months verified. */
const USAGE_DAYS_MIN = 35;
/** Minimum number of days for audit entries: they must be available until the yearly accounts are closed. */
const AUDIT_DAYS_MIN = 365;
const S3_ADDRESS = /^s3:\/\/([^/\s]+)(?:\/([^\s]*))?$/;

export function readRetention(
	read: EnvironmentReader,
	note: (problem: string) => void,
	options: { readonly cwd: string; readonly s3: S3Account | null },
): RetentionSettings {
	const atLeast = (min: number, name: string, days: number): number => {
		if (days > 0 && days < min) note(`${name} must be ${min} days or more, or 0 for ever; got ${days}`);
		return days;
	};
	const usageDays = read.integer("RETENTION_USAGE_DAYS", 0, 0, DAYS_MAX);
	const auditDays = read.integer("RETENTION_AUDIT_DAYS", 0, 0, DAYS_MAX);
	return Object.freeze({
		archive: archiveOf(read.text("ARCHIVE"), note, options),
		usageDays: atLeast(USAGE_DAYS_MIN, "RETENTION_USAGE_DAYS", usageDays),
		auditDays: atLeast(AUDIT_DAYS_MIN, "RETENTION_AUDIT_DAYS", auditDays),
		refusalDays: read.integer("RETENTION_REFUSAL_DAYS", 30, 0, DAYS_MAX),
	});
}

function archiveOf(
	place: string | null,
	note: (problem: string) => void,
	{ cwd, s3 }: { readonly cwd: string; readonly s3: S3Account | null },
): ArchiveAddress | null {
	if (place === null) return null;
	if (!place.startsWith("s3:")) return { folder: resolve(cwd, place) };
	const [, bucket, path = ""] = S3_ADDRESS.exec(place) ?? [];
	if (bucket === undefined) note("ARCHIVE must be a folder or s3://bucket/prefix");
	else if (s3 === null) note("S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are required with an ARCHIVE in a bucket");
	else return { bucket: { ...s3, bucket }, prefix: path === "" || path.endsWith("/") ? path : `${path}/` };
	return null;
}
