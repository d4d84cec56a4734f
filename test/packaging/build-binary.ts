import { join, resolve } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");

/** The commit that `bun run build` compiles into the binary. */
export function builtCommit(): string {
	const [word] = /"\$\{COMMIT.*\}"$/.exec(packageJson.scripts.build) ?? [];
	if (word === undefined) throw new Error("the script `build` does not end with the commit");
	return Bun.spawnSync(["sh", "-c", `printf %s ${word}`], { cwd: ROOT, env: process.env }).stdout.toString();
}

/** Path of the binary: `TOLLGATE_BINARY`, the test run's binary, or a new build at `outfile`. */
export async function buildBinary(outfile: string): Promise<string> {
	const given = process.env.TOLLGATE_BINARY ?? process.env.TEST_BINARY;
	if (given !== undefined) return resolve(given);
	// The paths are passed as variables, because they may contain characters with a meaning in the shell.
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
