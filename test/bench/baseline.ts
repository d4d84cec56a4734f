/** Builds and runs another checkout of the product, so that both versions are measured in the same minutes. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { runCli } from "../cli/run-cli.ts";
import { KEY_PEPPER, startProduct } from "./product.ts";

export const BASELINE = "baseline";
const CREDIT_USD = "1000000";

export interface BaselineOptions {
	readonly path: string;
	/** URL of an empty database, in which the baseline's own commands create the schema, customer and keys. */
	readonly databaseUrl: string;
	readonly upstreamPort: number;
	readonly folder: string;
	readonly keys: number;
}

export async function startBaseline(options: BaselineOptions) {
	const { databaseUrl, upstreamPort, folder } = options;
	const binary = await binaryOf(resolve(options.path), join(folder, "tollgate-baseline"));
	const env = { DATABASE_URL: databaseUrl, KEY_PEPPER, CONSOLE_SECRET: KEY_PEPPER, DATA_DIR: join(folder, "commands") };
	const command = async (...args: string[]) => {
		const result = await runCli([...args, "--json"], env, folder, [binary]);
		if (result.exitCode !== 0) throw new Error(`the baseline's ${args[0]} ${args[1] ?? ""} failed: ${result.stderr}`);
		return result;
	};
	await command("migrate");
	const account = (await command("account", "create", "--email", "bench@example.com")).json<{ id: string }>().id;
	const paid = ["--account", account, "--usd", CREDIT_USD, "--reference", "bench"];
	await command("topup", "confirm", (await command("topup", "create", ...paid)).json<{ id: string }>().id);
	const secrets: string[] = [];
	for (let key = 0; key < options.keys; key++) {
		const made = await command("key", "create", "--account", account, "--name", `bench ${key}`);
		secrets.push(made.json<{ secret: string }>().secret);
	}
	const gateway = await startProduct({ command: [binary], databaseUrl, upstreamPort, folder: join(folder, BASELINE) });
	return { gateway: { ...gateway, name: BASELINE }, secrets };
}

async function binaryOf(path: string, outfile: string): Promise<string> {
	if (!existsSync(path)) throw new Error(`there is no ${path}`);
	if (statSync(path).isFile()) return path;
	const build = Bun.spawn([process.execPath, "src/build.ts", outfile], {
		cwd: path,
		env: { ...process.env, NODE_ENV: "production" },
		stdio: ["ignore", "ignore", "pipe"],
	});
	const problem = await new Response(build.stderr).text();
	if ((await build.exited) !== 0) throw new Error(`the build of ${path} failed: ${problem}`);
	return outfile;
}
