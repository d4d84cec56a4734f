/** `rate`: requests per minute. `running`: concurrent requests. `tokens`: tokens per minute. */
export type LimitKind = "rate" | "running" | "tokens";

/** An instance's request to change its share of a key's limit. */
export interface ShareRequest {
	readonly key: string;
	readonly kind: LimitKind;
	/** Limit of the key over all instances together. */
	readonly limit: number;
	/** Share that the instance has and keeps. The store may grant the rest of its previous share to other instances. */
	readonly have: number;
	/** Share that the instance wants; at most `have` if it wants no increase. */
	readonly need: number;
	/** Number of the call, which increases within a process, so that a call that arrives late changes nothing. */
	readonly seq: number;
}

export interface ShareGrant {
	readonly key: string;
	readonly kind: LimitKind;
	/** The instance's share now, at least `have`. If less than `need`, other instances are notified to return parts. */
	readonly share: number;
	/** Part of the limit that no instance holds. */
	readonly free: number;
}

/** Stores the shares of all instances. Calls may be repeated; a call that throws may have taken effect. */
export interface ShareStore {
	/** Grants shares. A request whose row is locked has no effect and no result. */
	hold(asks: readonly ShareRequest[]): Promise<readonly ShareGrant[]>;
}
