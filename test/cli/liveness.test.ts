import { expect, test } from "bun:test";
import { watchLiveness } from "../../src/cli/worker-process.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const ASK_MS = 3_000;

/** Watches a process whose answers the test controls; counts the detected hangs. */
function watched() {
	const clock = createManualClock();
	const seen = { asked: 0, left: 0, hung: 0 };
	const answers: ("yes" | "no" | "never")[] = [];
	const end = watchLiveness(
		{ clock },
		{
			ask(signal) {
				seen.asked += 1;
				const answer = answers.shift() ?? "yes";
				if (answer === "yes") return Promise.resolve();
				if (answer === "no") return Promise.reject(new Error("nobody is there"));
				signal.addEventListener("abort", () => {
					seen.left += 1;
				});
				return new Promise(() => {});
			},
			onHung: () => {
				seen.hung += 1;
			},
		},
	);
	return {
		seen,
		answers,
		end,
		async pass(steps: number) {
			for (let step = 0; step < steps; step++) {
				clock.advance(ASK_MS);
				// Lets the callbacks run that await an answer.
				for (let turn = 0; turn < 10; turn++) await Promise.resolve();
			}
		},
	};
}

test("the liveness watch reports a hang once after three missed answers in a row", async () => {
	const one = watched();
	one.answers.push("yes", "never", "no", "never");
	await one.pass(5);
	expect(one.seen).toEqual({ asked: 4, left: 1, hung: 0 });
	await one.pass(1);
	expect(one.seen).toEqual({ asked: 4, left: 2, hung: 1 });
	await one.pass(10);
	expect(one.seen.asked).toBe(4);
});

test("an answer resets the liveness watch's count of missed answers", async () => {
	const one = watched();
	one.answers.push("no", "no", "yes", "no", "no", "yes");
	await one.pass(10);
	expect(one.seen).toEqual({ asked: 10, left: 0, hung: 0 });
});

test("the liveness watch reports no hang once it is stopped", async () => {
	const one = watched();
	one.answers.push("no", "no", "never");
	await one.pass(3);
	one.end();
	await one.pass(5);
	expect(one.seen).toEqual({ asked: 3, left: 1, hung: 0 });
});
