/** Kinds of service. */
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

/** What GET /status says: each model and each kind of service, connected or not. Public: names nothing else. */
export interface StatusAnswer {
	readonly object: "status";
	/** operational: everything is connected; degraded: something is not; unavailable: nothing is. */
	readonly status: "operational" | "degraded" | "unavailable";
	/** Of the instance that answers, with the build's commit if it is known: `0.3.0+1a2b3c4d5e6f`. */
	readonly version: string;
	/** ISO 8601. */
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

/** How the service did: the last 90 days in UTC. */
export interface HistoryAnswer {
	/** When it was last read, ISO 8601; null before the first time. */
	readonly as_of: string | null;
	/** First and last day, as `2026-11-21`. */
	readonly from: string;
	readonly to: string;
	readonly service: Track;
	/** Those that have a model. */
	readonly services: Readonly<Partial<Record<ServiceName, Track>>>;
	readonly models: readonly ({ readonly id: string } & Track)[];
}

export interface Track {
	/** Share of the observed minutes in which it was not down, rounded down; null if there are none. */
	readonly uptime_percent: number | null;
	/** Oldest first; days without data are left out. */
	readonly days: readonly TrackDay[];
}

export interface TrackDay {
	readonly date: string;
	readonly operational_minutes: number;
	readonly degraded_minutes: number;
	readonly down_minutes: number;
}
