import { join, resolve } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");

/** What the script `build` writes into the binary as its commit. */
export function builtCommit(): string {
	const [word] = /"\$\{COMMIT.*\}"$/.exec(packageJson.scripts.build) ?? [];
	if (word === undefined) throw new Error("the script `build` does not end with the commit");
	return Bun.spawnSync(["sh", "-c", `printf %s ${word}`], { cwd: ROOT, env: process.env }).stdout.toString();
}

/**
 * `TOLLGATE_BINARY`, or what the script `build` of package.json makes, at `outfile`; for a test in a run of several, what the
 * run has built. Gives its path.
 */
export async function buildBinary(outfile: string): Promise<string> {
	const given = process.env.TOLLGATE_BINARY ?? process.env.TEST_BINARY;
	if (given !== undefined) return resolve(given);
	// By variables: both paths may have signs that a shell reads.
	const script = packageJson.scripts.build.replace("bun ", '"$BUN" ').replace("dist/tollgate", '"$OUTFILE"');
	const build = Bun.spawn(["sh", "-c", script], {
		cwd: ROOT,
		env: { ...process.env, BUN: process.execPath, OUTFILE: outfile },
		stdio: ["ignore", "ignore", "pipe"],
	});
	const problem = await new Response(build.stderr).text();
	if ((await build.exited) !== 0) throw new Error(`the build failed: ${problem}`);
	return outfile;
}
