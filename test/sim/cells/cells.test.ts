import { expect, test } from "bun:test";
import { LONG } from "../../support/long-form.ts";
import type { Mistake } from "./cell.ts";
import { simulateCells } from "./simulate.ts";

const SEEDS = LONG ? 80 : 20;
const SEEDS_OF_A_MISTAKE = 300;

test("an account moves between two databases under load: nothing is overspent, no settlement is lost, what is revoked stays so", () => {
	const seen = new Map<string, number>();
	for (let seed = 1; seed <= SEEDS; seed++) {
		const result = simulateCells(seed);
		if (result.failure !== undefined) throw new Error(`seed ${seed}: ${result.failure}`);
		for (const [what, times] of Object.entries(result.seen)) seen.set(what, (seen.get(what) ?? 0) + times);
	}
	for (const what of ["admitted from", "admitted to", "crash", "recovered", "mover died", "revoked"])
		expect([what, (seen.get(what) ?? 0) > SEEDS / 4]).toEqual([what, true]);
});

const MISTAKES: readonly Mistake[] = [
	"credit is added before it is taken away",
	"what was taken away is added at each attempt",
	"what comes back later stays behind",
	"nobody waits for the fence",
	"a revocation goes to the new cell alone",
	"a revocation goes to the old cell alone",
	"a copied key overwrites one that is revoked",
	"a payment is booked where the account is by now",
];

for (const mistake of MISTAKES) {
	test(`the simulation notices it where ${mistake}`, () => {
		let seed = 1;
		while (seed <= SEEDS_OF_A_MISTAKE && simulateCells(seed, new Set([mistake])).failure === undefined) seed += 1;
		expect(seed).toBeLessThanOrEqual(SEEDS_OF_A_MISTAKE);
	});
}
