import type { UsageFilter } from "./api.ts";
import { t } from "./texts.tsx";

/** Date ranges in the URL: `range=7d`, or `from` and `to` in milliseconds. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const DATE_RANGES: readonly { value: string; label: string; days?: number }[] = [
	{ value: "24h", label: t("24 hours"), days: 1 },
	{ value: "7d", label: t("7 days"), days: 7 },
	{ value: "30d", label: t("30 days"), days: 30 },
	{ value: "month", label: t("This month") },
	{ value: "90d", label: t("90 days"), days: 90 },
	{ value: "365d", label: t("A year"), days: 365 },
];

const STATUSES = ["ok", "failed", "left"] as const;

export const BUCKETS = [
	{ value: "hour", label: t("By hour") },
	{ value: "day", label: t("By day") },
	{ value: "week", label: t("By week") },
	{ value: "month", label: t("By month") },
] as const;

type DateRange = Readonly<{ fromMs: number; toMs: number; bucket: (typeof BUCKETS)[number]["value"] }>;

function rangeOf(query: URLSearchParams, nowMs: number, usual: string): DateRange {
	const own = ownRange(query);
	const chosen = BUCKETS.find(({ value }) => value === query.get("bucket"))?.value;
	const withBucket = (fromMs: number, toMs: number) => {
		const isShort = toMs - fromMs <= 2 * DAY_MS;
		// The server accepts hourly buckets for at most a month.
		const isLong = chosen === "hour" && toMs - fromMs > 31 * DAY_MS;
		return { fromMs, toMs, bucket: (isLong ? undefined : chosen) ?? (isShort ? "hour" : "day") } as const;
	};
	if (own) return withBucket(own.fromMs, own.toMs);
	const range = query.get("range") ?? usual;
	if (range === "month") {
		const now = new Date(nowMs);
		return withBucket(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1), nowMs);
	}
	const lengthMs = (DATE_RANGES.find(({ value }) => value === range)?.days ?? 7) * DAY_MS;
	// Relative ranges begin at a whole hour or day, because usage is summed per hour and day.
	const bucketMs = lengthMs <= DAY_MS ? HOUR_MS : DAY_MS;
	const thisOne = Math.floor(nowMs / bucketMs) * bucketMs;
	return withBucket(thisOne - lengthMs + bucketMs, nowMs);
}

/** Returns the range of the URL parameters `from` and `to`; undefined if either is missing. */
export function ownRange(query: URLSearchParams): Pick<DateRange, "fromMs" | "toMs"> | undefined {
	const from = numberOf(query.get("from"));
	const to = numberOf(query.get("to"));
	return from !== null && to !== null && from < to ? { fromMs: from, toMs: to } : undefined;
}

/** Reads the filter from the URL. `usual` is the range for a URL without one. */
export function readUsageFilter(query: URLSearchParams, nowMs: number, usual = "7d"): Omit<UsageFilter, "group"> {
	const { fromMs, toMs, bucket } = rangeOf(query, nowMs, usual);
	return {
		from: fromMs,
		to: toMs,
		bucket,
		model: query.get("model"),
		key: query.get("key"),
		project: query.get("project"),
		status: STATUSES.find((status) => status === query.get("status")) ?? null,
	};
}

const numberOf = (text: string | null): number | null =>
	text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
