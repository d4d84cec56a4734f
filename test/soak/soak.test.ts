import { expect, test } from "bun:test";
import { startFastUpstream } from "../bench/fast-upstream.ts";
import { openBenchDatabase, startProduct } from "../bench/product.ts";
import { PROGRAM } from "../cli/run-cli.ts";
import { temporaryFolder, untilEnd } from "../support/at-end.ts";
import { createTestDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { runSoak } from "./soak.ts";

const [REQUESTS, ABORTS] = LONG ? [5_000, 1_000] : [600, 120];
const KEYS = 4;

/** Starts the service as a process, with an upstream for load tests in this process. */
async function startSoakService() {
	const folder = temporaryFolder();
	const upstream = startFastUpstream();
	const test = await createTestDatabase();
	const database = await openBenchDatabase(test.url);
	const { secrets } = await database.customer(KEYS);
	const gateway = await startProduct({
		command: PROGRAM,
		databaseUrl: test.url,
		upstreamPort: upstream.port,
		folder,
		pinned: false,
		env: { DRAIN_S: "1" },
	});
	return {
		gateway,
		database,
		secrets,
		upstream,
		upstreamCount: () => upstream.count(),
		async stop() {
			await gateway.stop();
			upstream.stop();
			await database.close();
			await test.drop();
		},
	};
}

/** Only on Linux, because memory and open files are read from /proc. */
const onLinux = test.skipIf(process.platform !== "linux");

const service = untilEnd(await startSoakService());

onLinux(
	`after ${REQUESTS} requests and ${ABORTS} hang-ups nothing is left over, and the books are exact`,
	async () => {
		const plan = {
			requests: REQUESTS,
			aborts: ABORTS,
			warmUpShare: 0.3,
			connections: 32,
			// A young heap first grows to its usual size, so only the long run has a tight limit.
			growthBytesMax: 96 * 1024 * 1024,
			seed: 5,
		};
		const { checks } = await runSoak(service, plan);
		expect(checks.filter(({ ok }) => !ok)).toEqual([]);
	},
	60_000,
);
