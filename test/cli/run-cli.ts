import { join } from "node:path";

export type CliResult = ReturnType<typeof cliResult>;

export type Program = readonly string[];

export const FROM_SOURCE: Program = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
/**
 * The program under test: the built binary (`support/built-product.ts`) if there is one, else the source. The binary
 * has no embedded PostgreSQL.
 */
export const PROGRAM: Program = Bun.env.TEST_BINARY === undefined ? FROM_SOURCE : [Bun.env.TEST_BINARY];

/** Runs the command line as a process with a minimal environment. */
export async function runCli(
	args: readonly string[],
	env: Record<string, string>,
	cwd = import.meta.dir,
	program: Program = PROGRAM,
): Promise<CliResult> {
	const child = Bun.spawn([...program, ...args], {
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

export function cliResult(exitCode: number, stdout: string, stderr: string) {
	return {
		exitCode,
		stdout,
		stderr,
		// biome-ignore lint/suspicious/noExplicitAny: output is read by hand
		json<Shape = any>(): Shape {
			if (!stdout.endsWith("\n") || stdout.trim().includes("\n")) throw new Error(`not one line: ${stdout} ${stderr}`);
			return JSON.parse(stdout);
		},
	};
}
