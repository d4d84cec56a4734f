import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import { migrate } from "../../../src/db/migrate.ts";
import { batchModel } from "../../batch/batch-service.ts";
import type { OwnPostgres } from "../../chaos/own-postgres.ts";
import { startOwnPostgres } from "../../chaos/own-postgres.ts";
import type { ServeProcess } from "../../chaos/serve-process.ts";
import { quietPort, startServe } from "../../chaos/serve-process.ts";
import type { TestDatabase } from "../../support/database.ts";
import { testDatabaseAt } from "../../support/database.ts";
import { chatModel } from "../../support/service.ts";
import type { UpstreamServer } from "../../support/upstream-server.ts";
import { startUpstream } from "../../support/upstream-server.ts";

/** A service of two instances with its model servers and database. The first has two workers and the console. */
export interface World {
	readonly url: string;
	readonly first: ServeProcess;
	readonly second: ServeProcess;
	readonly postgres: OwnPostgres;
	readonly database: TestDatabase;
	readonly pepper: string;
	readonly steady: UpstreamServer;
	readonly shaky: UpstreamServer;
	readonly narrow: UpstreamServer;
	/** The server of a webhook, which answers 410. */
	readonly gone: { readonly url: string };
	/** Functions that end whatever the faults have blocked. */
	readonly later: (() => void)[];
	/** Secret of the customer who sends requests throughout the run. */
	secret: string;
	accountId: string;
	stop(): Promise<void>;
}

const PEPPER = "p".repeat(40);

export async function startWorld(): Promise<World> {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-paged-"));
	const postgres = await startOwnPostgres();
	await migrate({ log: silentLog }, postgres.url);
	const database = await testDatabaseAt(postgres.url);
	const [steady, shaky, narrow] = [startUpstream(), startUpstream(), startUpstream()];
	const gone = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("no more", { status: 410 }) });
	const models = [
		batchModel(steady.url, { id: "steady" }),
		chatModel({ id: "shaky", url: shaky.url }),
		`${chatModel({ id: "narrow", url: narrow.url })}\n        max_concurrency: 1`,
		chatModel({ id: "absent", url: `http://127.0.0.1:${quietPort()}` }),
	];
	writeFileSync(join(folder, "tollgate.yaml"), `limits: { queue_length: 128 }\nmodels:\n${models.join("\n")}\n`);
	const env = (name: string) => ({
		PORT: String(quietPort()),
		DATABASE_URL: postgres.url,
		DATA_DIR: join(folder, name),
		CONFIG: join(folder, "tollgate.yaml"),
		INSTANCE_ID: name,
		KEY_PEPPER: PEPPER,
		CONSOLE_SECRET: PEPPER,
		DRAIN_S: "1",
		TRUSTED_PROXIES: "127.0.0.1",
		// No mail server listens on this port.
		SMTP_URL: `smtp://127.0.0.1:${quietPort()}`,
		MAIL_FROM: "Test <test@example.com>",
	});
	const first = await startServe(
		{ ...env("first"), ROLE: "all", WORKERS: "2" },
		{ ready: "all processes are ready", logPath: join(tmpdir(), "tollgate-paged.log") },
	);
	// A lease longer than the time that a console page waits for an instance.
	const second = await startServe({ ...env("second"), LEASE_TTL_S: "120" });
	return {
		url: first.url,
		first,
		second,
		postgres,
		database,
		pepper: PEPPER,
		steady,
		shaky,
		narrow,
		gone: { url: `http://127.0.0.1:${gone.port}/` },
		later: [],
		secret: "",
		accountId: "",
		async stop() {
			for (const served of [first, second]) {
				served.kill("SIGCONT");
				served.kill("SIGTERM");
			}
			const late = setTimeout(() => {
				for (const served of [first, second]) served.kill("SIGKILL");
			}, 20_000);
			await Promise.all([first.exited, second.exited]);
			clearTimeout(late);
			await database.drop();
			await postgres.destroy();
			await Promise.all([steady.stop(), shaky.stop(), narrow.stop(), gone.stop(true)]);
			rmSync(folder, { recursive: true, force: true });
		},
	};
}
