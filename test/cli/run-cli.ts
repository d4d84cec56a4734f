import { join } from "node:path";

export interface CliResult {
	readonly exitCode: number;
	readonly stdout: string;
	readonly stderr: string;
	/** stdout as JSON. */
	json<Shape>(): Shape;
}

export const SOURCE_MAIN = join(import.meta.dir, "../../src/main.ts");
/** What a process is started from: what a run of the tests has made of the source once (`support/product-bundle.ts`), or that. */
export const MAIN = Bun.env.TEST_MAIN ?? SOURCE_MAIN;

/** Runs the command line as a process of its own, with nothing of this process's environment but what programs need. */
export async function runCli(
	args: readonly string[],
	env: Record<string, string>,
	cwd = import.meta.dir,
): Promise<CliResult> {
	const child = Bun.spawn([process.execPath, MAIN, ...args], {
		cwd,
		env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env },
		stdout: "pipe",
		stderr: "pipe",
	});
	const [stdout, stderr, exitCode] = await Promise.all([
		new Response(child.stdout).text(),
		new Response(child.stderr).text(),
		child.exited,
	]);
	return cliResult(exitCode, stdout, stderr);
}

export function cliResult(exitCode: number, stdout: string, stderr: string): CliResult {
	return {
		exitCode,
		stdout,
		stderr,
		json() {
			if (!stdout.endsWith("\n") || stdout.trim().includes("\n")) throw new Error(`not one line: ${stdout} ${stderr}`);
			return JSON.parse(stdout);
		},
	};
}
