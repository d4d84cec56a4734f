/** What may be noticed while a table is locked whole, or a connection is silent, for longer than a lease. */
export interface LockTerms {
	/** Gates close when the lease is over, open again by themselves, and meanwhile everybody hears 503. */
	readonly closesGates?: true;
	/** A revocation waits for the table. */
	readonly delaysRevocations?: true;
	readonly why: string;
}

/** Of all other tables, those too that are yet to be made, nobody whose key and credit an instance knows notices anything. */
export const LOCKED_TABLES: Readonly<Record<string, LockTerms>> = {
	"public.instance_beat": {
		closesGates: true,
		delaysRevocations: true,
		why: "every heartbeat adds a row: without it nobody knows who may admit",
	},
	"public.control_log": {
		closesGates: true,
		delaysRevocations: true,
		why: "every heartbeat reads what is to be applied: who cannot know of a revocation must not admit",
	},
	"public.server_seen": { delaysRevocations: true, why: "a fence asks whether the database is on another server" },
	"public.api_key": { delaysRevocations: true, why: "the key's own row says that it is revoked" },
};

/** A connection that goes silent is given up and made anew; a revocation may wait for the next heartbeat or for a lease. */
export const SILENT_CONNECTION: LockTerms = {
	delaysRevocations: true,
	why: "the instance that cannot be reached is waited for, at most for its lease",
};

export interface Seen {
	/** Whose key and credit were known. */
	readonly served: number;
	readonly refused: Readonly<Record<string, number>>;
	/** How long the gate of an instance was closed, the longest. */
	readonly closedMs: number;
	/** Each took so long; undefined: it was given up. */
	readonly revocationsMs: readonly (number | undefined)[];
	/** From when it was let go until everybody was served again; undefined: not in time. */
	readonly recoveredMs: number | undefined;
}

/** On a machine that does other things too. */
const PROMPT_MS = 2_500;

/** Where what was seen is more than may be noticed. */
export function breaches(terms: LockTerms | undefined, seen: Seen): string[] {
	const breached: string[] = [];
	const codes = Object.keys(seen.refused);
	if (seen.served === 0) breached.push("nobody was served");
	if (seen.recoveredMs === undefined) breached.push("it did not come back");
	if (!terms?.closesGates) {
		if (seen.closedMs > 0) breached.push(`a gate was closed for ${seen.closedMs} ms`);
		if (codes.length > 0) breached.push(`refused: ${JSON.stringify(seen.refused)}`);
	} else {
		if (seen.closedMs === 0) breached.push("no gate closed, though nobody could renew a lease");
		const others = codes.filter((code) => code !== "503 service_unavailable");
		if (others.length > 0) breached.push(`refused: ${others.join(", ")}`);
	}
	const late = seen.revocationsMs.filter((ms) => ms === undefined || ms > PROMPT_MS).length;
	if (!terms?.delaysRevocations && late > 0)
		breached.push(`${late} of ${seen.revocationsMs.length} revocations waited`);
	return breached;
}
