/** Loaded before a process (`bun --preload`): on SIGUSR2 it writes the paths of all modules that it has loaded to `MODULES_FILE`. */
import { renameSync, writeFileSync } from "node:fs";

const path = Bun.env.MODULES_FILE;
if (path !== undefined) {
	process.on("SIGUSR2", () => {
		writeFileSync(`${path}.new`, JSON.stringify(Object.keys(require.cache)));
		renameSync(`${path}.new`, path);
	});
}
