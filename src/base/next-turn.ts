/** Resolves after others had their turn of the event loop: timers, sockets, what they set off. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Resolves when what this turn of the event loop has brought is begun: for all who ask in it together, so that they take
 * their next step one behind the other. With it before small requests are sent and before their answers are read, one costs
 * a fifth to a quarter less of the processor where many run (`test/bench/README.md`).
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
