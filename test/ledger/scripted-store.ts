import { Fault } from "../../src/base/fault.ts";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/time-slice.ts";
import { type BudgetShortage, createSlices, type Slice } from "../../src/ledger/slices.ts";
import type { GrantRequest, LedgerStore, ReturnRequest } from "../../src/ledger/store.ts";
import { generousStore } from "../support/generous-store.ts";
import { createManualClock, type ManualClock } from "../support/upstream-clock.ts";
import { usd } from "./fixture.ts";

export const OPTIONS = { horizonMs: 40_000 };

function scriptedStore(available: number) {
	const calls: { kind: "grant" | "return"; requests: readonly (GrantRequest | ReturnRequest)[] }[] = [];
	const granted = new Map<string, number>();
	const state = {
		available,
		/** Number of other instances that have credit and have not answered the recall. */
		unanswered: 0,
		/** Sum of the credit granted to all instances when a grant was refused after their answers. */
		lent: 0n,
		contested: false,
		untimely: false,
		/** Ids of budgets whose rows are locked. */
		held: new Set<string>(),
		recalled: [] as string[][],
		onRecall: async () => {},
		onGrant: (_request: GrantRequest): void => {},
		beforeReply: async () => {},
	};
	const store: LedgerStore = {
		...generousStore(),
		async grant(requests) {
			calls.push({ kind: "grant", requests });
			const replies = requests.map((request) => {
				const { op, budget, want, min, again } = request;
				state.onGrant(request);
				const busy = state.held.has(budget);
				const { unanswered, contested, untimely } = state;
				const lent = unanswered === 0 && request.ticket !== null ? state.lent : null;
				let amount = busy || untimely ? 0 : granted.get(op);
				if (amount === undefined) {
					amount = min <= state.available ? Math.min(want, state.available) : 0;
					state.available -= amount;
					if (amount > 0 || again) granted.set(op, amount);
				}
				const available = usd(untimely ? 0 : state.available);
				return { op, amount: usd(amount), available, unanswered, lent, contested, busy, untimely };
			});
			await state.beforeReply();
			return replies;
		},
		async giveBack(requests) {
			calls.push({ kind: "return", requests });
			await state.beforeReply();
			const busy = requests.filter(({ budget }) => state.held.has(budget));
			for (const request of requests) if (!busy.includes(request)) state.available += request.amount;
			return new Set(busy.map(({ op }) => op));
		},
		async recall(budgets) {
			state.recalled.push([...budgets]);
			await state.onRecall();
			return state.recalled.length;
		},
	};
	return { store, state, calls };
}

export function scriptedSlices(available: number) {
	const { store, state, calls } = scriptedStore(available);
	const clock = createManualClock();
	const slices = createSlices({ store, clock, log: silentLog, newUuid }, OPTIONS);
	/** Delays the next replies until the returned function is called. */
	const holdReplies = () => {
		const { promise, resolve } = Promise.withResolvers<void>();
		state.beforeReply = () => promise;
		return () => {
			state.beforeReply = async () => {};
			resolve();
		};
	};
	const sliceOf = (budget: string) => slices.get(budget) as Slice;
	return { slices, state, calls, clock, holdReplies, sliceOf };
}

export async function passTime(clock: ManualClock, ms: number): Promise<void> {
	for (let passed = 0; passed < ms; passed += 5) {
		await nextTurn();
		clock.advance(5);
	}
	await nextTurn();
}

/** Outcome of a draw: null if it succeeded, else its shortage, or the code of its Fault. */
export const drawOutcome = (drawn: Promise<BudgetShortage | null>) =>
	drawn.then(
		(shortage) => (shortage === null ? "drawn" : "refused"),
		(error) => (error instanceof Fault ? error.code : String(error)),
	);
