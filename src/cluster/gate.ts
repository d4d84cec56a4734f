import type { Clock } from "../base/clock.ts";

export type Gate = ReturnType<typeof createGate>;

export interface GateMark {
	readonly monotonicMs: number;
	readonly wallMs: number;
}

/**
 * Decides whether this instance may admit requests. Closes by its own clocks when the lease is over, even if all other
 * code hangs. Uses two clocks: the monotonic one stops while a virtual machine is suspended, the wall clock can be set
 * back.
 */
export function createGate({ clock }: { clock: Clock }) {
	let mark: GateMark = { monotonicMs: 0, wallMs: 0 };
	let forMs = 0;
	let closedFor: string | undefined = "starting";
	let final = false;
	let openings = 0;

	const isFresh = () => clock.monotonicMs() - mark.monotonicMs < forMs && clock.wallMs() - mark.wallMs < forMs;

	const isOpen = () => closedFor === undefined && isFresh();

	return {
		/** Synchronous and fast, because every request calls this function. */
		isOpen,
		/** Why the gate is closed, for `/readyz`; undefined while it is open. */
		reason: () =>
			closedFor ?? (isFresh() ? undefined : "the lease is over: the database has not answered a heartbeat in time"),
		/** Milliseconds until the gate closes unless extended, by the clock with the shorter rest; 0 if it is closed. */
		leftMs() {
			if (closedFor !== undefined) return 0;
			const passedMs = Math.max(clock.monotonicMs() - mark.monotonicMs, clock.wallMs() - mark.wallMs);
			return Math.max(0, forMs - passedMs);
		},
		/** Number of openings. While the gate was closed, other instances may have received this instance's shares. */
		openings: () => openings,
		/** Start of a lease. Call it before sending the heartbeat, so that the gate closes before the lease ends. */
		mark: () => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() }),
		/** Opens the gate for `durationMs` from the mark. Closes when either clock, monotonic or wall, reaches the end. */
		extend(since: GateMark, durationMs: number) {
			if (final) return;
			if (!isOpen()) openings += 1;
			mark = since;
			forMs = durationMs;
			closedFor = undefined;
		},
		/** Closes the gate until the next `extend`; with `forGood` for ever. */
		close(reason: string, forGood = false) {
			closedFor = reason;
			final ||= forGood;
		},
	};
}
