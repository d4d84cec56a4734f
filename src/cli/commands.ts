import { accountCommands } from "./account-commands.ts";
import { batchCommands } from "./batch-commands.ts";
import { catalogCommands } from "./catalog-commands.ts";
import { clusterCommands, migrateCommand } from "./cluster-commands.ts";
import type { Command } from "./command.ts";
import { doctorCommand } from "./doctor-command.ts";
import { healthCommand } from "./health-command.ts";
import { initCommand } from "./init-command.ts";
import { keyCommands } from "./key-commands.ts";
import { ledgerCommands } from "./ledger-commands.ts";
import { managementKeyCommands } from "./management-key-commands.ts";
import { operatorCommands } from "./operator-commands.ts";
import { projectCommands } from "./project-commands.ts";
import { topUpCommands } from "./top-up-commands.ts";

/** Every command except `serve`, `help` and `version`, in the order of the help. */
export const COMMANDS: readonly Command[] = [
	initCommand,
	doctorCommand,
	migrateCommand,
	...accountCommands,
	...topUpCommands,
	...projectCommands,
	...keyCommands,
	...batchCommands,
	...catalogCommands,
	...ledgerCommands,
	...clusterCommands,
	...operatorCommands,
	...managementKeyCommands,
	healthCommand,
];
