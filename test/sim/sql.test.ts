import { expect, test } from "bun:test";
import { simulateSql } from "./simulate-sql.ts";

/** Short ones with much that befalls them. The long form is `bun run sim -- --sql --seeds 200`. */
const SEEDS = [2, 22];
const DEADLINE_MS = 120_000;

test(
	"every invariant holds with the real functions on PostgreSQL, whatever befalls processes, connections and statements",
	async () => {
		const seen = new Set<string>();
		for (const seed of SEEDS) {
			const { failure, stats } = await simulateSql(seed);
			if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts --sql --seed ${seed}`);
			for (const what of Object.keys(stats)) seen.add(what);
		}
		const expected = [
			"settled",
			"refused",
			"revoked",
			"rows held",
			"cancelled in the midst",
			"fault: partition host",
			"fault: kill host",
			"fault: server clock step host",
			"fault: power host",
			"ended by another end",
			"fault rate_limit_exceeded",
			"waited for a lock",
			"money moved",
			"fault: damaged journal",
		];
		expect(expected.filter((what) => !seen.has(what))).toEqual([]);
	},
	DEADLINE_MS,
);
