/** `rate`: requests a minute. `running`: requests at once. */
export type LimitKind = "rate" | "running";

/** What one instance says and asks of its share of one key's limit. */
export interface ShareAsk {
	readonly key: string;
	readonly kind: LimitKind;
	/** The key's whole limit. */
	readonly limit: number;
	/** The share that is in memory: all of the rest may be given to others. */
	readonly have: number;
	/** The share that is needed; not more than `have` if nothing is asked. */
	readonly need: number;
	/** Grows with each ask of this process: an earlier one that arrives late changes nothing. */
	readonly seq: number;
}

export interface ShareGrant {
	readonly key: string;
	readonly kind: LimitKind;
	/** At least `have`; less than `need` if others hold the rest. Those are told then that somebody lacks it. */
	readonly share: number;
	/** What nobody holds. */
	readonly free: number;
}

/** Where shares are kept for all instances. May be repeated; may throw (outcome unknown). */
export interface ShareStore {
	/** Of an ask that was left out, because somebody holds its row, there is no grant: nothing came of it. */
	hold(asks: readonly ShareAsk[]): Promise<readonly ShareGrant[]>;
}
