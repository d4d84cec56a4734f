/** Resolves after others had their turn of the event loop: timers, sockets, what they set off. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}
