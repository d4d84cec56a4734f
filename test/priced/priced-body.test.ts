import { expect, test } from "bun:test";
import fc from "fast-check";
import { LONG } from "../support/long-form.ts";
import { chatBodyText, completionBodyText } from "./body-text.ts";
import { judgeBody } from "./judge.ts";

/** Number of cases. `CASES=100000` runs many; `SEED` repeats a run and shrinks a failing case. */
const CASES = Number(Bun.env.CASES ?? (LONG ? 2_000 : 500));
/** Fixed seeds, so that only a change can cause a failure. The long run uses random seeds. */
const SEED = Number(Bun.env.SEED ?? (LONG ? Date.now() % 2 ** 31 : 20_261_128));

for (const [kind, bodies, share] of [
	["chat", chatBodyText, 0.7],
	["completions", completionBodyText, 0.3],
] as const)
	test(
		`${kind}: the text sent to the server is exactly the text that was priced`,
		() => {
			let taken = 0;
			const property = fc.property(bodies, (text) => {
				taken += judgeBody(kind, text);
			});
			// Does not shrink by default, because shrinking may take a thousand bodies.
			fc.assert(property, { numRuns: CASES * share, seed: SEED, endOnFailure: Bun.env.CASES === undefined });
			expect(taken).toBeGreaterThan((CASES * share) / 2);
		},
		120_000 + 10 * CASES,
	);
