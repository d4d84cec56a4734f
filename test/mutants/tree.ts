/** A copy of the project for one fault at a time, so that the checkout stays clean. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Tree {
	readonly folder: string;
	/** Runs the test files until one fails; null after a timeout. */
	run(files: readonly string[]): Promise<{ failed: boolean; by: string } | null>;
	changed<T>(file: string, text: string, work: () => Promise<T>): Promise<T>;
	remove(): void;
}

const COPIED = ["src", "test", "package.json", "bunfig.toml", "tsconfig.json", "deploy", "README.md"];
const RUN_MS_MAX = 400_000;
const TEST_MS_MAX = 60_000;

export function plantTree(root: string): Tree {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-mutants-"));
	for (const name of COPIED) cpSync(join(root, name), join(folder, name), { recursive: true });
	symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
	return {
		folder,
		async run(files) {
			if (files.length === 0) return { failed: false, by: "" };
			const paths = files.map((file) => `./${file}`);
			const child = Bun.spawn([process.execPath, "test", "--bail=1", `--timeout=${TEST_MS_MAX}`, ...paths], {
				cwd: folder,
				env: { ...process.env, TEST_POSTGRES_HELD: "1" },
				stdout: "pipe",
				stderr: "pipe",
				timeout: RUN_MS_MAX,
				killSignal: "SIGKILL",
			});
			const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
			await child.exited;
			if (child.signalCode !== null) return null;
			const test = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(out + err)?.[1];
			return { failed: child.exitCode !== 0, by: test ?? "does not start" };
		},
		async changed(file, text, work) {
			const path = join(folder, file);
			const healthy = await Bun.file(path).text();
			writeFileSync(path, text);
			try {
				return await work();
			} finally {
				writeFileSync(path, healthy);
			}
		},
		remove: () => rmSync(folder, { recursive: true, force: true }),
	};
}
