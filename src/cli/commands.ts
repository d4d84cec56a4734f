import { parse } from "yaml";
import { assert } from "../base/assert.ts";
import { TOP_UP_STATES } from "../billing/top-ups.ts";
import { USUAL_PORTS } from "../demo/discover.ts";
import { MANAGEMENT_SCOPES } from "../keys/management-scope.ts";
import { accountCommands, topUpCommands } from "./account-commands.ts";
import { batchCommands } from "./batch-commands.ts";
import { catalogCommands } from "./catalog-commands.ts";
import { clusterCommands } from "./cluster-commands.ts";
import type { Command, CommandRuns } from "./command.ts";
import described from "./commands.yaml" with { type: "text" };
import { doctorCommands } from "./doctor-commands.ts";
import { initCommand } from "./init-command.ts";
import { keyCommands } from "./key-commands.ts";
import { ledgerCommands } from "./ledger-commands.ts";
import { operatorCommands } from "./operator-commands.ts";
import { projectCommands } from "./project-commands.ts";

const RUNS: CommandRuns = {
	...initCommand,
	...doctorCommands,
	...accountCommands,
	...topUpCommands,
	...projectCommands,
	...keyCommands,
	...batchCommands,
	...catalogCommands,
	...ledgerCommands,
	...clusterCommands,
	...operatorCommands,
};

const VALUES = { ports: USUAL_PORTS.join(","), scopes: MANAGEMENT_SCOPES.join(", "), states: TOP_UP_STATES.join(", ") };

/** All commands except `serve`, `help` and `version`, in the order of the help. */
export const COMMANDS: readonly Command[] = readCommands();

function readCommands(): Command[] {
	const text = (described as string).replace(
		/\{(ports|scopes|states)\}/g,
		(_, name: keyof typeof VALUES) => VALUES[name],
	);
	const { commands } = parse(text, { merge: true }) as { commands: Record<string, Partial<Command>> };
	const names = Object.keys(commands);
	assert(names.length === Object.keys(RUNS).length, "commands.yaml describes the commands that there are");
	return names.map((name) => {
		const run = RUNS[name];
		assert(run !== undefined, `there is a command ${name}`);
		return { summary: "", arguments: [], options: {}, ...commands[name], name, run };
	});
}
