import { assert } from "./assert.ts";

export interface States<State extends string> {
	now(): State;
	is(state: State): boolean;
	/** Changes to state `next`. Throws AssertionError if `transitions` does not allow that. */
	enter(next: State): void;
}

/** `transitions`: for each state, the states that may follow it. */
export function createStates<State extends string>(
	transitions: Readonly<Record<State, readonly State[]>>,
	first: NoInfer<State>,
): States<State> {
	let present: State = first;
	return {
		now: () => present,
		is: (state) => present === state,
		enter(next) {
			assert(transitions[present].includes(next), `no transition leads from ${present} to ${next}`);
			present = next;
		},
	};
}
