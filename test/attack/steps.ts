import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";
import type { Product } from "./product.ts";

export type Steps = ReturnType<typeof watchSteps>;

/** Measures the CPU time of each step of a process's event loop (Linux). */
export function watchSteps() {
	const folder = temporaryFolder();
	/** Steps of more than a millisecond since the previous call. */
	async function taken({ serve }: Product): Promise<number[]> {
		const path = join(folder, String(serve.pid));
		rmSync(path, { force: true });
		serve.kill("SIGWINCH");
		await waitFor(() => Bun.file(path).exists(), "the steps of the event loop");
		return JSON.parse(readFileSync(path, "utf8")) as number[];
	}
	return {
		options: { preload: join(import.meta.dir, "../support/loop-steps.ts"), env: { STEPS_DIR: folder } },
		taken,
		longest: async (product: Product) => (await taken(product)).reduce((longest, ms) => Math.max(longest, ms), 0),
	};
}
