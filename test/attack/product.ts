import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { parseUsd } from "../../src/money/nano-usd.ts";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { payIn } from "../support/paid-account.ts";
import { childrenOf } from "../support/processes.ts";
import { chatModel } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

export type Product = Awaited<ReturnType<typeof withProduct>>;

const PEPPER = "p".repeat(32);
/** Makes password hashes cheap. `planes/apart.test.ts` measures their real cost. */
const CHEAP_SCRYPT = join(import.meta.dir, "../support/cheap-scrypt.ts");

/** The product in a separate process, with customers with and without a top-up. */
export async function withProduct(options: {
	models: string;
	limits?: string;
	env?: Readonly<Record<string, string>>;
	logPath?: string;
	/** A module that the process and its children load, such as cheap password hashes. */
	preload?: string;
}) {
	const db = await withDatabase();
	const folder = temporaryFolder();
	const config = join(folder, "tollgate.yaml");
	writeFileSync(config, `models:\n${options.models}\n${options.limits ? `limits:\n${options.limits}\n` : ""}`);
	const env: Record<string, string> = {
		PORT: String(quietPort()),
		DATABASE_URL: db.url,
		DATA_DIR: folder,
		CONFIG: config,
		KEY_PEPPER: PEPPER,
		...options.env,
	};
	const { logPath, preload = CHEAP_SCRYPT } = options;
	const serve = await startServe(env, { ...(logPath === undefined ? {} : { logPath }), preload });
	atEnd(async () => {
		const children = options.env?.ROLE === "all" ? childrenOf(serve.pid) : [];
		serve.kill("SIGKILL");
		// Without this, the children would end only after their drain time.
		for (const pid of children) process.kill(pid, "SIGKILL");
		await serve.exited;
	});
	// The console is a second process, which is ready a moment later.
	if (options.env?.ROLE === "all")
		await waitFor(async () => (await fetch(`${serve.url}/api/console/public/config`)).ok, "the console to answer");
	const maker = { statements: db.statements, digest: createDigest(PEPPER), serviceName: "service" };
	return {
		serve,
		url: serve.url,
		db,
		async secret(credit?: string) {
			const { id } = await createAccount(db.statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true });
			const amount = credit === undefined ? undefined : parseUsd(credit);
			if (amount !== undefined) await payIn(db.statements, id, amount);
			return (await createKey(maker, id, { name: "test" })).secret;
		},
		/** Largest memory of the process since its start, or since `forgetMemory`. */
		async memoryBytes() {
			const status = await Bun.file(`/proc/${serve.pid}/status`).text();
			return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
		},
		forgetMemory: () => writeFileSync(`/proc/${serve.pid}/clear_refs`, "5"),
	};
}

/** The product with its console, and a model. */
export function withConsole(env: Readonly<Record<string, string>> = {}, more: { logPath?: string } = {}) {
	const models = chatModel({ url: withUpstream("vllm").url, dialect: "vllm" });
	return withProduct({ models, env: { ROLE: "all", ...env }, ...more });
}

/** Polls the process until the returned function is called, which returns the longest delay of an answer in ms. */
export function watchLife(url: string, everyMs = 50): () => Promise<number> {
	let worstMs = 0;
	let stopping = false;
	const watching = (async () => {
		while (!stopping) {
			const startedMs = performance.now();
			await (await fetch(`${url}/livez`)).text();
			worstMs = Math.max(worstMs, performance.now() - startedMs);
			await Bun.sleep(everyMs);
		}
	})();
	return async () => {
		stopping = true;
		await watching;
		return worstMs;
	};
}
