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

/** Time after which other work gets its turn of the event loop. */
const TURN_MS = 5;

export type TimeSlice = ReturnType<typeof createTimeSlice>;

/** The share of the event loop of a long task, checked between its steps. */
export function createTimeSlice(turnMs = TURN_MS) {
	let endsMs = performance.now() + turnMs;
	return {
		isOver: () => performance.now() > endsMs,
		/** Resolves in a later turn, after other work ran. */
		async next() {
			await nextTurn();
			endsMs = performance.now() + turnMs;
		},
	};
}

/** `list.map(map)`, yielding to other work if it takes long. */
export async function mapInTurns<Item, Result>(
	list: readonly Item[],
	map: (item: Item, place: number) => Result,
	timeSlice = createTimeSlice(),
): Promise<Result[]> {
	const results: Result[] = [];
	for (let at = 0; at < list.length; at += 1) {
		results.push(map(list[at] as Item, at));
		if (timeSlice.isOver()) await timeSlice.next();
	}
	return results;
}
