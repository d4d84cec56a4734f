import { join } from "node:path";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import type { KeySettings } from "../../src/keys/key-settings.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { runHere } from "./run-here.ts";

const PEPPER = "p".repeat(32);

/** Gives tests of commands a database, a data folder, and an environment that points to these. */
export async function withCommands() {
	const database = await withDatabase();
	const folder = temporaryFolder();
	const env = {
		DATABASE_URL: database.url,
		DATA_DIR: join(folder, "data"),
		KEY_PEPPER: PEPPER,
		CONSOLE_SECRET: PEPPER,
	};
	return {
		database,
		folder,
		env,
		run: (...args: string[]) => runHere([...args, "--json"], env),
		/** Inserts the rows of an account, without a command. */
		async newAccount(): Promise<string> {
			const email = `${crypto.randomUUID()}@example.com`;
			return (await createAccount(database.statements, { email, vouched: true })).id;
		},
		async newKey(account: string, settings: KeySettings = {}): Promise<{ id: string; secret: string }> {
			const maker = { statements: database.statements, digest: createDigest(PEPPER), serviceName: "service" };
			const { id, secret } = await createKey(maker, account, { name: "k", ...settings });
			return { id, secret };
		},
	};
}
