/**
 * Random JSON, forms and raw HTTP, and mutated recordings and model servers' answers: no 5xx, no crash, and sound
 * books. `bun run fuzz` is the long form: `FUZZ_MINUTES` in all, `FUZZ_SEED` to repeat.
 */
import { expect, test } from "bun:test";
import { withProduct } from "../attack/product.ts";
import { watchSteps } from "../attack/steps.ts";
import { untilEnd } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { fuzz, KINDS } from "./fuzz.ts";
import { startServers } from "./servers.ts";
import { deployments } from "./targets.ts";

const minutes = Number(Bun.env.FUZZ_MINUTES ?? 0);
const seed = Number(Bun.env.FUZZ_SEED ?? (minutes > 0 ? Date.now() % 2 ** 31 : 7));
const INPUTS = LONG || minutes > 0 ? 150 : 40;
/** Processor time. Without bounds it was seconds. */
const HELD_MS_MAX = 150;

const servers = untilEnd(startServers(createRandom(seed + 1)));
const steps = watchSteps();
const product = await withProduct({
	models: `${deployments(servers.goodUrl)}\n${deployments(servers.lyingUrl, "lying-")}`,
	limits:
		"  first_event_s: 2\n  silence_s: 1\n  total_s: 5\n  status_hold_s: 1\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1\n  auth_failures_per_minute: 1000000",
	...steps.options,
});

test(
	"no input causes a 500, a stop, a delay or wrong books",
	async () => {
		const msAKind = (minutes * 60_000) / KINDS.length;
		const { tallies, defects } = await fuzz(product, { seed, inputs: INPUTS, msAKind, steps, concurrency: 4 });
		if (minutes > 0) {
			console.log(`seed ${seed}, ${servers.answers()} answers changed, ${defects.length} defects`);
			console.log(JSON.stringify(tallies, undefined, "\t"));
		}
		expect([`seed ${seed}`, ...defects]).toEqual([`seed ${seed}`]);
		for (const kind of KINDS) {
			expect(tallies[kind].tried).toBeGreaterThanOrEqual(INPUTS);
			expect(tallies[kind].worstMs).toBeLessThan(HELD_MS_MAX);
		}
	},
	60_000 + 2 * minutes * 60_000,
);
