import { createProcessorTurns } from "./processor-turns.ts";

/** Resolves after timers and sockets have been served once. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Resolves once per turn of the event loop for all callers in it, so that their next steps run back to back. Used
 * before small requests are sent and their responses are read: saves 20–25 % CPU under load (`test/bench/README.md`).
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

/** Milliseconds after which a long task lets other work run. */
const TURN_MS = 5;
/** Most that one step is charged, because a task may have waited since its last step. */
const STEP_MS_MAX = 25;

export type TimeSlice = ReturnType<typeof createTimeSlice>;

/** One for the process, like the event loop. */
const turns = createProcessorTurns();
let tasks = 0;

/** Runs a short step of an owner's work: at once, or in the owner's turn if the slice is used up. */
export const runInTurn: typeof turns.run = turns.run;

/** Charges work that was refused to its owner. */
export const chargeRefusedWork = turns.refused.bind(turns);

/** Whether work of the owner was refused lately. */
export const hadRefusals: typeof turns.hadRefusals = turns.hadRefusals;

/** Resolves when a step of an owner's work may begin; undefined if it may at once. */
export const waitForTurn = turns.begin.bind(turns);

/** Tells a long task after each step whether it should let other work run. Tasks of one owner run one after another. */
export function createTimeSlice(turnMs = TURN_MS, owner = `task ${tasks++}`) {
	let endsMs = performance.now() + turnMs;
	let chargedToMs = endsMs - turnMs;

	function restart(): void {
		chargedToMs = performance.now();
		endsMs = chargedToMs + turnMs;
	}

	/** Charges the owner for the processor time since the last call. */
	function charge(): number {
		const nowMs = performance.now();
		turns.spend(owner, Math.min(nowMs - chargedToMs, STEP_MS_MAX));
		chargedToMs = nowMs;
		return nowMs;
	}

	return {
		/** Call it after each step. True: call `next`. */
		isOver: () => charge() > endsMs,
		/** Call it before the first step: waits while other tasks use the event loop. */
		async begin() {
			await turns.begin(owner, 0);
			restart();
		},
		/** Lets other work run and resolves after it. */
		async next() {
			charge();
			await turns.next(owner, 0, true);
			restart();
		},
	};
}

/** Like `list.map(map)`, but lets other work run if it takes long. */
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
