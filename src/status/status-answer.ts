/** Kinds of endpoints whose status is shown. */
export const SERVICE_NAMES = [
	"chat",
	"completions",
	"embeddings",
	"transcription",
	"image_generation",
	"rerank",
	"batch",
] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

export type ServiceState = "connected" | "unavailable";

/** Response of GET /status: whether each model and kind of endpoint is connected. It is public, so it has no more. */
export interface StatusAnswer {
	readonly object: "status";
	/** operational: all are connected. degraded: some are not. unavailable: none is connected. */
	readonly status: "operational" | "degraded" | "unavailable";
	/** Version of the instance that answers, with its commit if known: `0.3.0+1a2b3c4d5e6f`. */
	readonly version: string;
	/** Time in ISO 8601. */
	readonly checked_at: string;
	readonly services: Readonly<Record<ServiceName, ServiceState>>;
	readonly models: readonly {
		readonly id: string;
		readonly name: string;
		readonly kind: string;
		readonly status: ServiceState;
	}[];
	readonly history: HistoryAnswer;
}

/** History of the last 90 days (UTC). */
export interface HistoryAnswer {
	/** When the history was last read from Postgres, in ISO 8601; null before the first read. */
	readonly as_of: string | null;
	/** First and last day of the history, as `2026-11-21`. */
	readonly from: string;
	readonly to: string;
	readonly service: UptimeTrack;
	/** Kinds of endpoints that at least one model serves. */
	readonly services: Readonly<Partial<Record<ServiceName, UptimeTrack>>>;
	readonly models: readonly ({ readonly id: string } & UptimeTrack)[];
}

export interface UptimeTrack {
	/** Share of observed minutes that were not down, rounded down; null if no minute was observed. */
	readonly uptime_percent: number | null;
	/** Oldest first; days without data are missing. */
	readonly days: readonly UptimeDay[];
}

export interface UptimeDay {
	readonly date: string;
	readonly operational_minutes: number;
	readonly degraded_minutes: number;
	readonly down_minutes: number;
}
