/**
 * Generated bodies by the hundred thousand: what was reserved for each against what another reader finds in what is sent.
 *
 *     bun test/priced/run.ts                            100,000 cases
 *     bun test/priced/run.ts --cases 5000 --seed 42
 *
 * Prints the seed, and of a case that fails its smallest form. Exit code 1 then.
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
