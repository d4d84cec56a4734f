/**
 * Compares the reservations for generated bodies with an independent parser's reading of the sent bodies.
 *
 *     bun test/priced/run.ts                            100,000 cases
 *     bun test/priced/run.ts --cases 5000 --seed 42
 *
 * Prints the seed and the smallest form of a failing case, with exit code 1.
 */
import { parseArgs } from "node:util";
import fc from "fast-check";
import { chatBodyText, completionBodyText } from "./body-text.ts";
import { judge } from "./judge.ts";

const { values: flags } = parseArgs({
	options: {
		cases: { type: "string", default: "100000" },
		seed: { type: "string", default: String(Date.now() % 2 ** 31) },
	},
});
const cases = Number(flags.cases);
const seed = Number(flags.seed);
console.log(`${cases} cases, seed ${seed}`);
const counts = { chat: 0, completions: 0 };
for (const [kind, bodies] of [
	["chat", chatBodyText],
	["completions", completionBodyText],
] as const) {
	fc.assert(
		fc.property(bodies, (text) => {
			counts[kind] += judge(kind, text);
		}),
		{ numRuns: Math.ceil(cases / 2), seed },
	);
	console.log(`${kind}: ${Math.ceil(cases / 2)} bodies, sent ${counts[kind]} times, nothing that was not reserved`);
}
