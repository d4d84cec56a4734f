import { expect, test } from "bun:test";
import { startFastUpstream } from "../bench/fast-upstream.ts";
import { openBenchDatabase, startProduct } from "../bench/product.ts";
import { PROGRAM } from "../cli/run-cli.ts";
import { atEnd, temporaryFolder, untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { runSoak } from "./soak.ts";

const [REQUESTS, ABORTS] = LONG ? [5_000, 1_000] : [600, 120];
const KEYS = 4;

const upstream = untilEnd(startFastUpstream());
const { url } = await withDatabase();
const database = await openBenchDatabase(url);
atEnd(() => database.close());
const { secrets } = await database.customer(KEYS);
const gateway = untilEnd(
	await startProduct({
		...{ command: PROGRAM, databaseUrl: url, upstreamPort: upstream.port, folder: temporaryFolder(), pinned: false },
		env: { DRAIN_S: "1" },
	}),
);

/** Only on Linux, because memory and open files are read from /proc. */
const onLinux = test.skipIf(process.platform !== "linux");

onLinux(
	`${REQUESTS} requests and ${ABORTS} disconnects leave no memory or file in use, and exact books`,
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
		const { checks } = await runSoak({ gateway, database, secrets, upstreamCount: upstream.count }, plan);
		expect(checks.filter(({ ok }) => !ok)).toEqual([]);
	},
	60_000,
);
