import { expect, test } from "bun:test";
import fc from "fast-check";
import { chatBodyText, completionBodyText } from "./body-text.ts";
import { judge } from "./judge.ts";

/** The short form of `bun test/priced/run.ts`. */
const CASES = 2_000;

for (const [kind, bodies, share] of [
	["chat", chatBodyText, 0.7],
	["completions", completionBodyText, 0.3],
] as const)
	test(`${kind}: what is priced is what is sent, as another reader of JSON sees it`, () => {
		let taken = 0;
		fc.assert(
			fc.property(bodies, (text) => {
				taken += judge(kind, text);
			}),
			{ numRuns: CASES * share },
		);
		// Most are wrong in some way and refused; a test of those alone would show nothing.
		expect(taken).toBeGreaterThan((CASES * share) / 2);
	});
