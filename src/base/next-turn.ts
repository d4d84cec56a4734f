/** Resolves after other work had its turn of the event loop: timers, sockets, and their consequences. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Resolves once per event-loop turn, for all callers in it, so that their next steps run back to back. Used before
 * small requests are sent and their responses read, it saves 20–25 % CPU under load (`test/bench/README.md`).
 */
export type TickBarrier = () => Promise<void>;

export function createTickBarrier(): TickBarrier {
	let ended: Promise<void> | undefined;
	const begin = (resolve: () => void) =>
		setImmediate(() => {
			ended = undefined;
			resolve();
		});
	return () => {
		ended ??= new Promise(begin);
		return ended;
	};
}
