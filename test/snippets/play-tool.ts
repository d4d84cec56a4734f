import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { PackageStep, Tool, ToolValues } from "../../src/web/snippets/tools.ts";

export interface ToolRun {
	/** An empty folder, which is the tool's home and working directory. */
	readonly folder: string;
	/** Returns the command that installs a package; undefined if the packages are already installed. */
	readonly install?: (step: PackageStep) => string;
	/** True if the last line keeps running while `after` runs. */
	readonly serves?: boolean;
	/** Shell lines before and after the lines of the page. */
	readonly before?: string;
	readonly after?: string;
	readonly env?: Readonly<Record<string, string | undefined>>;
	readonly timeoutMs: number;
}

export interface Outcome {
	readonly code: number;
	readonly out: string;
	readonly err: string;
}

/** Follows a page: writes its files, then runs its lines in one shell. */
export async function playTool(tool: Tool, facts: ToolValues, run: ToolRun): Promise<Outcome> {
	const lines = ["set -e", run.before ?? ""];
	for (const step of tool.steps(facts)) {
		if (step.does === "shell") lines.push(step.code + (run.serves ? " > serving.log 2>&1 & trap 'kill $!' EXIT" : ""));
		if (step.does === "packages" && run.install) lines.push(run.install(step));
		if (step.does === "file") writeText(join(run.folder, step.path.replace(/^~\//, "")), step.code);
	}
	const shell = Bun.spawn(["bash", "-c", [...lines, run.after ?? ""].join("\n")], {
		cwd: run.folder,
		env: { PATH: Bun.env.PATH ?? "", LANG: "C.UTF-8", HOME: run.folder, ...run.env },
		stdout: "pipe",
		stderr: "pipe",
		timeout: run.timeoutMs,
	});
	const [out, err] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()]);
	return { code: await shell.exited, out, err };
}

function writeText(path: string, text: string): void {
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(path, `${text}\n`);
}
