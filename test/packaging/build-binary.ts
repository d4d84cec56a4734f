import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");

/** `TOLLGATE_BINARY`, or what the script `build` of package.json makes, at `outfile`. Gives its path. */
export async function buildBinary(outfile: string): Promise<string> {
	if (process.env.TOLLGATE_BINARY !== undefined) return process.env.TOLLGATE_BINARY;
	const script = packageJson.scripts.build.replace("dist/tollgate", outfile);
	const build = Bun.spawn(["sh", "-c", script.replaceAll("bun ", `${process.execPath} `)], {
		cwd: ROOT,
		stdio: ["ignore", "ignore", "pipe"],
	});
	const problem = await new Response(build.stderr).text();
	if ((await build.exited) !== 0) throw new Error(`the build failed: ${problem}`);
	return outfile;
}
