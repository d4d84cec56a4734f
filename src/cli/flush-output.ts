import { type Clock, sleep } from "../base/clock.ts";

const WAIT_MS = 1_000;
/** A service that is told to end has somebody who ends it otherwise, ten seconds later at the soonest (Docker). */
const WAITS_MAX = 5;

/** Resolves once all is `said`, or nobody reads: for a second nothing of what is `unread` has gone out. Who reads slowly is waited for. */
export async function flushOutput(clock: Clock, said: Promise<unknown>, unread: () => number): Promise<void> {
	let isSaid = false;
	const end = said.then(() => {
		isSaid = true;
	});
	let before: number | undefined;
	for (let wait = 0; wait < WAITS_MAX && !isSaid && unread() !== before; wait += 1) {
		before = unread();
		await Promise.race([end, sleep(clock, WAIT_MS)]);
	}
}
