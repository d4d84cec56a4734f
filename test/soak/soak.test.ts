import { expect, test } from "bun:test";
import { untilEnd } from "../support/at-end.ts";
import { startSoakService } from "./service.ts";
import { runSoak } from "./soak.ts";

/** Memory and files are read from /proc. */
const onLinux = test.skipIf(process.platform !== "linux");

const service = untilEnd(await startSoakService());

onLinux(
	"after thousands of requests and hundreds of hang-ups nothing is left over, and the books are exact",
	async () => {
		const plan = {
			requests: 5_000,
			aborts: 1_000,
			warmUpShare: 0.3,
			connections: 32,
			// A young heap still grows to its size; the long form has the tight limit.
			growthBytesMax: 96 * 1024 * 1024,
			seed: 5,
		};
		const { checks } = await runSoak(service, plan, () => {});
		expect(checks.filter(({ ok }) => !ok)).toEqual([]);
	},
	60_000,
);
