import { createLog } from "../../src/base/log.ts";
import { COMMIT, VERSION } from "../../src/base/version.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { runCommand } from "../../src/cli/run-command.ts";
import { loadConfig } from "../../src/config.ts";
import { hasFunctionSet } from "../../src/db/function-set.ts";
import { migratedUrl } from "../../src/db/migrate.ts";
import { type CliResult, cliResult } from "./run-cli.ts";

/**
 * Runs a command line in this process as `main.ts` would. Takes half a second less than `runCli`, which starts a
 * process.
 */
export async function runHere(
	args: readonly string[],
	env: Record<string, string>,
	cwd = import.meta.dir,
): Promise<CliResult> {
	let stdout = "";
	let stderr = "";
	const err = (text: string) => {
		stderr += text;
	};
	const exitCode = await runCommand(
		{
			commands: COMMANDS,
			version: { version: VERSION, commit: COMMIT },
			env,
			loadConfig: () => loadConfig(env, cwd),
			// A cloned test database has a complete schema; checking it would take most of a command's time.
			preparedUrl: async (url) => (hasFunctionSet(url) ? url : migratedUrl(url)),
			log: createLog({ level: "warn", write: (line) => err(`${line}\n`) }),
			out(text) {
				stdout += text;
			},
			err,
			outProblem: async () => undefined,
			columns: null,
		},
		args,
	);
	return cliResult(exitCode, stdout, stderr);
}
