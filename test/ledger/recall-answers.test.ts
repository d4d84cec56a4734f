import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { createRecallAnswers } from "../../src/ledger/recall-answers.ts";
import type { RecallRequest } from "../../src/ledger/store.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { passTime } from "./scripted-store.ts";

function build() {
	const clock = createManualClock();
	const state = { asked: [] as RecallRequest[], answered: [] as string[], held: Promise.resolve(), looks: 0 };
	const answers = createRecallAnswers({
		store: {
			recalls: async () => {
				state.looks += 1;
				return state.asked;
			},
		},
		async answer(budget, ticket) {
			if (budget === "held") await state.held;
			state.answered.push(`${budget} ${ticket}`);
			state.asked = state.asked.filter((one) => one.budget !== budget || one.ticket > ticket);
		},
		clock,
		log: silentLog,
	});
	return { clock, state, answers };
}

test("a recall whose notification was lost is found within two seconds", async () => {
	const { clock, state, answers } = build();
	state.asked = [{ budget: "b", ticket: 1 }];
	await passTime(clock, 1_500);
	expect(state.answered).toEqual(["b 1"]);
	state.asked = [{ budget: "b", ticket: 2 }];
	await passTime(clock, 1_500);
	expect(state.answered).toEqual(["b 1", "b 2"]);
	answers.stop();
});

test("an instance answers a recall without waiting for slow answers of other budgets", async () => {
	const { clock, state, answers } = build();
	const { promise, resolve } = Promise.withResolvers<void>();
	state.held = promise;
	state.asked = [{ budget: "held", ticket: 1 }];
	answers.hear();
	await passTime(clock, 50);
	state.asked = [
		{ budget: "held", ticket: 3 },
		{ budget: "other", ticket: 2 },
	];
	answers.hear();
	await passTime(clock, 50);
	expect(state.answered).toEqual(["other 2"]);
	resolve();
	await passTime(clock, 50);
	expect(state.answered).toEqual(["other 2", "held 1", "held 3"]);
	answers.stop();
});

test("an instance queries Postgres for recalls at most once in ten milliseconds", async () => {
	const { clock, state, answers } = build();
	for (let asked = 0; asked < 20; asked++) {
		answers.hear();
		await passTime(clock, 5);
	}
	expect(state.looks).toBeGreaterThanOrEqual(5);
	expect(state.looks).toBeLessThanOrEqual(12);
	answers.stop();
	answers.hear();
	const before = state.looks;
	await passTime(clock, 3_000);
	expect(state.looks).toBe(before);
});
