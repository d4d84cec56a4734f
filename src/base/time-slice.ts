import { createProcessorTurns } from "./processor-turns.ts";

/** Resolves after the event loop has served timers and sockets once. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Resolves once per turn of the event loop for all callers in that turn, so that their next steps run back to back.
 * Used before small requests are sent and their responses read: saves 20–25 % CPU under load (`test/bench/README.md`).
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

/** Milliseconds after which a long task must let other work run. */
const TURN_MS = 5;
/** Maximum milliseconds that one step is charged, because the task may have waited since its last step. */
const STEP_MS_MAX = 25;

export type TimeSlice = ReturnType<typeof createTimeSlice>;

/** One instance for the process, because the event loop is shared too. */
const turns = createProcessorTurns();
let tasks = 0;

/** Runs a short step of an owner's work: at once, or in the owner's turn if the time slice is used up. */
export const runInTurn: typeof turns.run = turns.run;

/** Charges refused work to its owner, see `createProcessorTurns`. */
export const chargeRefusedWork = turns.refused;

/** Processor time assumed for receiving and checking a body that is refused. */
const REFUSED_BODY_MS = 4;

/** Charges a refused body to its owner. Resolves when the refusal may be answered; undefined if at once. */
export const chargeRefusedBody = (owner: string, signal?: AbortSignal): Promise<void> | undefined =>
	turns.refused(owner, REFUSED_BODY_MS, signal);

/** Resolves when a step of an owner's work may begin; undefined if it may begin at once. */
export const waitForTurn = turns.begin.bind(turns);

/** Processor time assumed for starting a request, and for a request that its client cancels. */
const REQUEST_MS = 1 / 32;
const CANCELLED_MS = 1 / 4;

/** Separate from `turns`, so that small requests do not wait for large bodies. */
const requestTurns = createProcessorTurns();

/** True if a request of an account may start at once; then it counts as started. */
export const mayStartRequest = (owner: string): boolean => requestTurns.mayBegin(owner, REQUEST_MS);

/**
 * Resolves when a request may start that may not start at once. If more requests arrive in one turn of the event loop
 * than fit into a slice, they wait, and the owner that used least is next. Check `signal` afterwards.
 */
export const waitForRequestTurn = (owner: string, signal: AbortSignal): Promise<void> =>
	requestTurns.next(owner, REQUEST_MS, false, signal);

/** Processor time assumed for a request that costs nothing: a refusal, a look-up or a public document. */
const UNPAID_MS = 1 / 8;
const unpaidTurns = createProcessorTurns();

/** Charges a request that costs nothing to its owner. Resolves when it may be answered; undefined if at once. */
export const chargeUnpaidRequest = (owner: string, signal: AbortSignal, ms = UNPAID_MS): Promise<void> | undefined =>
	unpaidTurns.refused(owner, ms, signal);

/** Charges a cancelled request to its account, like refused work. An account with many waits for the next window. */
export const chargeCancelledRequest = (accountId: string): void => requestTurns.charge(accountId, CANCELLED_MS);

/** Tells a long task after each step whether to let other work run. Tasks of the same owner run one after another. */
export function createTimeSlice(turnMs = TURN_MS, owner = `task ${tasks++}`) {
	let endsMs = performance.now() + turnMs;
	let chargedToMs = endsMs - turnMs;

	function restart(): void {
		chargedToMs = performance.now();
		endsMs = chargedToMs + turnMs;
	}

	/** Charges the owner for the processor time used since the last call. */
	function charge(): number {
		const nowMs = performance.now();
		turns.spend(owner, Math.min(nowMs - chargedToMs, STEP_MS_MAX));
		chargedToMs = nowMs;
		return nowMs;
	}

	return {
		/** Call it after each step of the task. True: call `next` before the next step. */
		isOver: () => charge() > endsMs,
		/** Call it before the first step of the task. Waits while other tasks use the event loop. */
		async begin() {
			await turns.begin(owner, 0);
			restart();
		},
		/** Lets other work run; resolves when it is this task's turn again. */
		async next() {
			charge();
			await turns.next(owner, 0, true);
			restart();
		},
	};
}

/** Like `list.map(map)`, but lets other work run in between if the list is long. */
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
