import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";
import type { Product } from "./product.ts";

/** The steps of a product's event loop, by the processor's own time, on Linux. */
export interface Steps {
	/** Of `withProduct`. */
	readonly options: { readonly preload: string; readonly env: Readonly<Record<string, string>> };
	/** The longest since the last time, in ms. */
	longest(product: Product): Promise<number>;
}

export function watchSteps(): Steps {
	const folder = temporaryFolder();
	return {
		options: { preload: join(import.meta.dir, "../support/loop-steps.ts"), env: { STEPS_DIR: folder } },
		async longest({ serve }) {
			const path = join(folder, String(serve.pid));
			rmSync(path, { force: true });
			serve.kill("SIGWINCH");
			await waitFor(() => Bun.file(path).exists(), "the steps of the event loop");
			return Number(readFileSync(path, "utf8"));
		},
	};
}
