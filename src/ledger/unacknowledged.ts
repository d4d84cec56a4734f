import { type NanoUsd, subUsd } from "../money/nano-usd.ts";
import type { HoldOf } from "./hold.ts";
import type { Journal } from "./journal.ts";
import type { Slice, Slices } from "./slices.ts";

/**
 * Settlements that Postgres has not acknowledged, by ticket. One array per field with reused indexes: holds are freed
 * early, and the garbage collector visits no object per settlement. The writer's queue limit bounds the arrays.
 */
export function createUnacknowledged(deps: { slices: Pick<Slices, "leave">; journal: Pick<Journal, "acknowledge"> }) {
	const { slices, journal } = deps;
	const accounts: Slice[] = [];
	const keys: Slice[] = [];
	const furthers: (readonly Slice[])[] = [];
	const charges: NanoUsd[] = [];
	/** Rests of holds whose settlement the journal lacks; kept, because a replay would charge by progress. */
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
		/** Returns a ticket. `journalled`: the journal has the settlement. `posted` resolves when Postgres has it. */
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
		/** Frees what was kept for the settlement, because Postgres has durably recorded it. The ticket is then reused. */
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
		/** Rejects all waiting promises with `why`, because no more settlements are sent to Postgres. */
		giveUp(why: unknown) {
			for (const posted of waiters.splice(0)) {
				// Avoids an unhandled rejection, because a client that has disconnected does not await the promise.
				posted?.promise.catch(() => {});
				posted?.reject(why);
			}
		},
	};
}
