import { createProcessorTurns } from "./processor-turns.ts";

/** Resolves after a turn of the event loop: timers and sockets have been served. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Resolves once per turn of the event loop for all callers in it, so that their next steps run back to back. Used
 * before small requests are sent and their responses read: saves 20–25 % CPU under load (`test/bench/README.md`).
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

/** Milliseconds after which a long task yields to other work. */
const TURN_MS = 5;
/** Most that one step is charged: a task may have waited since its last step. */
const STEP_MS_MAX = 25;

export type TimeSlice = ReturnType<typeof createTimeSlice>;

/** Of the process, like its event loop. */
const turns = createProcessorTurns();
let tasks = 0;

/** Runs a short step of an owner's work: now, or in the owner's turn if this turn of the event loop is used up. */
export const runInTurn: typeof turns.run = turns.run;

/** Limits an owner whose work comes to nothing. */
export const refusedWork = turns.refused.bind(turns);

/** Resolves when a step of an owner's work may begin; undefined if it may now. */
export const turnFor = turns.begin.bind(turns);

/**
 * Lets a long task check, between its steps, whether it should yield to the event loop. Tasks of one owner run one
 * after another.
 */
export function createTimeSlice(turnMs = TURN_MS, owner = `task ${tasks++}`) {
	let endsMs = performance.now() + turnMs;
	let chargedToMs = endsMs - turnMs;

	function restart(): void {
		chargedToMs = performance.now();
		endsMs = chargedToMs + turnMs;
	}

	/** Charges the processor time since the last call to the owner. */
	function charge(): number {
		const nowMs = performance.now();
		turns.spend(owner, Math.min(nowMs - chargedToMs, STEP_MS_MAX));
		chargedToMs = nowMs;
		return nowMs;
	}

	return {
		/** Call it after each step. */
		isOver: () => charge() > endsMs,
		/** Before the first step: waits while the event loop is busy with other tasks. */
		async begin() {
			await turns.begin(owner, 0);
			restart();
		},
		/** Yields: resolves in a later turn, after other work has run. */
		async next() {
			charge();
			await turns.next(owner, 0, true);
			restart();
		},
	};
}

/** Like `list.map(map)`, but yields to other work if it takes long. */
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
