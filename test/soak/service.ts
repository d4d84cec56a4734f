/** The service as a process of its own over the tests' Postgres, with an upstream made for load in this process. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FastUpstream, startFastUpstream } from "../bench/fast-upstream.ts";
import { openBenchDatabase, startProduct } from "../bench/product.ts";
import { PROGRAM } from "../cli/run-cli.ts";
import { createTestDatabase } from "../support/database.ts";
import type { SoakParts } from "./soak.ts";

export interface SoakService extends SoakParts {
	readonly upstream: FastUpstream;
	stop(): Promise<void>;
}

const KEYS = 4;

export async function startSoakService(): Promise<SoakService> {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-soak-"));
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
			rmSync(folder, { recursive: true, force: true });
		},
	};
}
