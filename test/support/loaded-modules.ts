/** Preloaded into a process (`bun --preload`): on SIGUSR2 writes the paths of all loaded modules to `MODULES_FILE`. */
import { renameSync, writeFileSync } from "node:fs";

const path = Bun.env.MODULES_FILE;
if (path !== undefined) {
	process.on("SIGUSR2", () => {
		writeFileSync(`${path}.new`, JSON.stringify(Object.keys(require.cache)));
		renameSync(`${path}.new`, path);
	});
}
