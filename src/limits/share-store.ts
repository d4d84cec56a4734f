/** `rate`: requests per minute. `running`: concurrent requests. `tokens`: tokens per minute. */
export type LimitKind = "rate" | "running" | "tokens";

/** An instance's request to change its share of a key's limit. */
export interface ShareRequest {
	readonly key: string;
	readonly kind: LimitKind;
	/** Limit of the key, over all instances. */
	readonly limit: number;
	/** Share that the instance has and keeps; the store may grant the rest of its former share to others. */
	readonly have: number;
	/** Share that the instance requests; at most `have` if it requests no increase. */
	readonly need: number;
	/** Number of the call, which increases in a process, so that an earlier call that arrives late changes nothing. */
	readonly seq: number;
}

export interface ShareGrant {
	readonly key: string;
	readonly kind: LimitKind;
	/** The share now, at least `have`. If it is less than `need`, the other instances have the rest and are notified. */
	readonly share: number;
	/** Part of the limit that no instance holds. */
	readonly free: number;
}

/** Stores the shares of all instances. Calls may be repeated; one that throws may have taken effect. */
export interface ShareStore {
	/** Grants shares. A request with a locked row has no effect and no result. */
	hold(asks: readonly ShareRequest[]): Promise<readonly ShareGrant[]>;
}
