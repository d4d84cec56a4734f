import { expect, test } from "bun:test";
import fc from "fast-check";
import { LONG } from "../support/long-form.ts";
import { chatBodyText, completionBodyText } from "./body-text.ts";
import { judge } from "./judge.ts";

const CASES = LONG ? 2_000 : 500;
/** Fixed seeds, so that a failure is due to a change; the long form takes others. */
const SEED = Number(Bun.env.SEED ?? (LONG ? Date.now() % 2 ** 31 : 20_261_128));

for (const [kind, bodies, share] of [
	["chat", chatBodyText, 0.7],
	["completions", completionBodyText, 0.3],
] as const)
	test(`${kind}: the priced text is the sent text`, () => {
		let taken = 0;
		const property = fc.property(bodies, (text) => {
			taken += judge(kind, text);
		});
		// No shrinking here, which may take a thousand bodies: the command does it for the printed seed.
		fc.assert(property, { numRuns: CASES * share, seed: SEED, endOnFailure: true });
		expect(taken).toBeGreaterThan((CASES * share) / 2);
	}, 120_000);
