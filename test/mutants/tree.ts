import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Killer, PlacedMutant } from "./mutant.ts";
import { mutate } from "./mutant.ts";

/** A copy of the project in which one mutant at a time lives. */
export interface Tree {
	/** Whether it notices, and what it says of it. Null: it did not end in time. */
	run(killer: Killer): Promise<{ failed: boolean; by: string } | null>;
	/** Puts the mutant in and gives back how to take it out. */
	infect(mutant: PlacedMutant): Promise<() => Promise<void>>;
	remove(): void;
}

const COPIED = ["src", "test", "package.json", "bunfig.toml", "tsconfig.json"];
const TESTS_MS_MAX = 240_000;
const SEED_MS_MAX = 10_000;
const TEST_MS_MAX = 30_000;

export function plantTree(root: string): Tree {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-mutants-"));
	for (const name of COPIED) cpSync(join(root, name), join(folder, name), { recursive: true });
	symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));

	async function execute(
		command: readonly string[],
		timeoutMs: number,
	): Promise<{ exitCode: number | null; output: string }> {
		const child = Bun.spawn([process.execPath, ...command], {
			cwd: folder,
			env: { ...process.env, TEST_POSTGRES_HELD: "1" },
			stdout: "pipe",
			stderr: "pipe",
			timeout: timeoutMs,
			killSignal: "SIGKILL",
		});
		const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
		await child.exited;
		return { exitCode: child.signalCode === null ? child.exitCode : null, output: out + err };
	}

	return {
		async run(killer) {
			if (typeof killer === "number") {
				const { exitCode, output } = await execute(
					["test/sim/run.ts", "--seeds", String(killer)],
					killer * SEED_MS_MAX,
				);
				if (exitCode === null) return null;
				return { failed: exitCode !== 0, by: /^seed \d+: .*/m.exec(output)?.[0] ?? `${killer} seeds` };
			}
			const file = `./test/${killer}.test.ts`;
			const { exitCode, output } = await execute(["test", "--bail=1", `--timeout=${TEST_MS_MAX}`, file], TESTS_MS_MAX);
			if (exitCode === null) return null;
			const test = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(output)?.[1];
			return { failed: exitCode !== 0, by: test ?? "does not run" };
		},
		async infect(mutant) {
			const path = join(folder, "src", mutant.file);
			const healthy = await Bun.file(path).text();
			await Bun.write(path, mutate(folder, mutant));
			return async () => void (await Bun.write(path, healthy));
		},
		remove: () => rmSync(folder, { recursive: true, force: true }),
	};
}
