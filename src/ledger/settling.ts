import { DatabaseBusy } from "../db/outage.ts";
import type { AdmittedEvent, SettledEvent, Settlements } from "./event.ts";
import { LeaseExceeded, type LedgerStore } from "./store.ts";

export interface SettleResult {
	/** Indexes of settlements that were not recorded, because a row that they need is locked. */
	readonly held: ReadonlySet<number>;
	/** Number of settlements that exceeded their leases and were therefore charged to available credit. */
	readonly forgotten: number;
}

export const NONE_HELD: ReadonlySet<number> = new Set();

/**
 * Records settlements and running requests (`openJson`, AdmittedEvents) in Postgres; repeatable. A lease covers its
 * charges unless the database lost a grant in a failover or restore. Settlements above their lease are charged like
 * those of an ended epoch: to available credit, and the rest is written off.
 */
export async function settleBatch(store: LedgerStore, batch: Settlements, openJson: string): Promise<SettleResult> {
	try {
		const { late, busy } = await store.flush(batch, openJson);
		if (late) {
			const events = [...batch];
			const waiting = new Set(await settleLate(store, events));
			return { held: placesOf(events, (event) => waiting.has(event)), forgotten: 0 };
		}
		const held = busy.size === 0 ? NONE_HELD : placesOf(batch, (event) => needsBusyRow(event, busy));
		return { held, forgotten: 0 };
	} catch (error) {
		if (!(error instanceof LeaseExceeded)) throw error;
		return settleEach(store, batch, openJson);
	}
}

async function settleEach(store: LedgerStore, batch: Settlements, openJson: string): Promise<SettleResult> {
	if (openJson !== "[]") await store.flush([], openJson);
	const held = new Set<number>();
	let forgotten = 0;
	for (const [place, event] of [...batch].entries()) {
		const fits = await store.flush([event], "[]").catch((error: unknown) => {
			if (error instanceof LeaseExceeded) return undefined;
			throw error;
		});
		if (fits && !fits.late) {
			if (needsBusyRow(event, fits.busy)) held.add(place);
			continue;
		}
		if ((await settleLate(store, [event])).length > 0) held.add(place);
		else if (!fits) forgotten += 1;
	}
	return { held, forgotten };
}

/**
 * Settles requests of an ended epoch one by one. Returns those that wait for a locked row. `settled` is called for each
 * stored one, so that a retry after a failure can leave it out.
 */
export async function settleLate(
	store: LedgerStore,
	batch: readonly SettledEvent[],
	settled: (event: SettledEvent) => void = () => {},
): Promise<SettledEvent[]> {
	const held: SettledEvent[] = [];
	const accounts = new Set<string>();
	for (const event of batch) {
		// Skips further settlements of an account whose row is locked: a wait for each would delay other accounts.
		if (accounts.has(event.account)) {
			held.push(event);
			continue;
		}
		try {
			await store.settleLate(JSON.stringify(event));
			settled(event);
		} catch (error) {
			if (!(error instanceof DatabaseBusy)) throw error;
			held.push(event);
			accounts.add(event.account);
		}
	}
	return held;
}

function placesOf(batch: Settlements, chosen: (event: SettledEvent) => boolean): ReadonlySet<number> {
	return new Set([...batch].flatMap((event, place) => (chosen(event) ? [place] : [])));
}

export const needsBusyRow = ({ id, account, key, budgets }: AdmittedEvent, busy: ReadonlySet<string>): boolean =>
	busy.has(id) || busy.has(account) || busy.has(key) || (budgets?.some((budget) => busy.has(budget)) ?? false);
