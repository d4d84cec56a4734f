/** `rate`: requests per minute. `running`: concurrent requests. */
export type LimitKind = "rate" | "running";

/** An instance's request to change its share of a key's limit. */
export interface ShareRequest {
	readonly key: string;
	readonly kind: LimitKind;
	/** Limit of the key, over all instances. */
	readonly limit: number;
	/** Share that the instance keeps in any case; the store may grant the rest of its former share to others. */
	readonly have: number;
	/** Share that the instance needs; `have` or less to request nothing. */
	readonly need: number;
	/** Grows with each call of this process, so that an earlier call arriving late changes nothing. */
	readonly seq: number;
}

export interface ShareGrant {
	readonly key: string;
	readonly kind: LimitKind;
	/** Share granted, at least `have`. If less than `need`, others hold the rest and are asked to return it. */
	readonly share: number;
	/** Part of the limit that no instance holds. */
	readonly free: number;
}

/** Stores shares of all instances. Calls may be repeated; a call that throws may have taken effect. */
export interface ShareStore {
	/** Grants shares. A request whose row is locked is missing from the result and has no effect. */
	hold(asks: readonly ShareRequest[]): Promise<readonly ShareGrant[]>;
}
