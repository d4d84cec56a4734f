/** `rate`: requests a minute. `running`: concurrent requests. */
export type LimitKind = "rate" | "running";

/** An instance's request about its share of one key's limit. */
export interface ShareAsk {
	readonly key: string;
	readonly kind: LimitKind;
	/** The key's whole limit. */
	readonly limit: number;
	/** The share in memory; the rest may be granted to others. */
	readonly have: number;
	/** The share that is needed; at most `have` if nothing is requested. */
	readonly need: number;
	/** Increases with each call of this process: a late earlier call changes nothing. */
	readonly seq: number;
}

export interface ShareGrant {
	readonly key: string;
	readonly kind: LimitKind;
	/** At least `have`; less than `need` if others hold the rest, who are then asked to return it. */
	readonly share: number;
	/** What no instance holds. */
	readonly free: number;
}

/** Stores shares for all instances. Calls may be repeated and may throw with an unknown outcome. */
export interface ShareStore {
	/** A request whose row is locked is left out, without a grant and without effect. */
	hold(asks: readonly ShareAsk[]): Promise<readonly ShareGrant[]>;
}
