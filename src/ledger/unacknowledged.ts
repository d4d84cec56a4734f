import { type NanoUsd, subUsd } from "../money/nano-usd.ts";
import type { HoldOf } from "./hold.ts";
import type { Journal } from "./journal.ts";
import type { Slice, Slices } from "./slices.ts";

/**
 * What to do when Postgres has a settlement, by ticket. One array per field with reused indexes: the holds are released
 * early, and the garbage collector visits no object per settlement. Bounded by the writer's queue.
 */
export function createUnacknowledged(deps: { slices: Pick<Slices, "leave">; journal: Pick<Journal, "acknowledge"> }) {
	const { slices, journal } = deps;
	const accounts: Slice[] = [];
	const keys: Slice[] = [];
	const furthers: (readonly Slice[])[] = [];
	const charges: NanoUsd[] = [];
	/** Amounts still held because the journal lacks the settlement: a crash would charge by progress. */
	const rests: (NanoUsd | undefined)[] = [];
	const lowerings: number[] = [];
	const segments: number[] = [];
	const waiters: (PromiseWithResolvers<void> | undefined)[] = [];
	const unused: number[] = [];

	function acknowledgeOn(slice: Slice, ticket: number): void {
		const rest = rests[ticket];
		slice.unacknowledged = subUsd(slice.unacknowledged, charges[ticket] as NanoUsd);
		if (rest !== undefined) slices.leave(slice, rest, lowerings[ticket] as number);
	}

	return {
		/** Returns a ticket. `journalled`: the journal has the settlement. `posted` is resolved when Postgres has it. */
		add(hold: HoldOf<unknown>, charged: NanoUsd, journalled: boolean, posted: PromiseWithResolvers<void> | undefined) {
			const ticket = unused.pop() ?? charges.length;
			accounts[ticket] = hold.account;
			keys[ticket] = hold.key;
			furthers[ticket] = hold.further;
			charges[ticket] = charged;
			rests[ticket] = journalled ? undefined : subUsd(hold.reserved, charged);
			lowerings[ticket] = hold.lowering;
			segments[ticket] = hold.segment;
			waiters[ticket] = posted;
			return ticket;
		},
		/** Releases what the settlement held, because Postgres has durably recorded it. The ticket can then be reused. */
		acknowledge(ticket: number) {
			acknowledgeOn(accounts[ticket] as Slice, ticket);
			acknowledgeOn(keys[ticket] as Slice, ticket);
			for (const slice of furthers[ticket] as readonly Slice[]) acknowledgeOn(slice, ticket);
			journal.acknowledge(segments[ticket] as number);
			const posted = waiters[ticket];
			waiters[ticket] = undefined;
			unused.push(ticket);
			posted?.resolve();
		},
		/** Rejects all waiting promises with `why`, because nothing more is sent to Postgres. */
		giveUp(why: unknown) {
			for (const posted of waiters.splice(0)) {
				// Marks the promise as handled, because a client that disconnected does not wait for it.
				posted?.promise.catch(() => {});
				posted?.reject(why);
			}
		},
	};
}
