import { nextTurn } from "./next-turn.ts";

/** After so long others have their turn of the event loop. */
const TURN_MS = 5;

/** A long work's share of the event loop, looked at between its steps. */
export interface TimeSlice {
	isOver(): boolean;
	/** Resolves with a turn of its own, after others had theirs. */
	next(): Promise<void>;
}

/** Begins now. */
export function createTimeSlice(turnMs = TURN_MS): TimeSlice {
	let endsMs = performance.now() + turnMs;
	return {
		isOver: () => performance.now() > endsMs,
		async next() {
			await nextTurn();
			endsMs = performance.now() + turnMs;
		},
	};
}

/** `list.map(map)`, with turns for others in between where it takes long. */
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
