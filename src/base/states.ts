import { assert } from "./assert.ts";

export interface States<State extends string> {
	now(): State;
	is(state: State): boolean;
	/** Asserts that a transition leads from the present state to `next`. */
	enter(next: State): void;
}

/** `transitions`: the states that may follow each state. */
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
