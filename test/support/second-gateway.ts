import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config.ts";
import { type App, createApp } from "./app.ts";
import { atEnd, temporaryFolder } from "./at-end.ts";
import { preparedDatabase, type TestService } from "./service.ts";

/**
 * Starts a second instance, until the end of the file, with the service's catalogue and database (or `databaseUrl`).
 * `more` is additional environment.
 */
export async function secondGateway(
	service: TestService,
	databaseUrl = service.db.url,
	more: Readonly<Record<string, string>> = {},
): Promise<App> {
	const env = {
		PORT: "0",
		DATABASE_URL: databaseUrl,
		DATA_DIR: temporaryFolder(),
		CONFIG: service.app.config.configPath ?? "",
		KEY_PEPPER: service.app.secrets.keyPepper,
		DRAIN_S: "2",
		...more,
	};
	const app = await createApp(loadConfig(env, service.dataDir), {
		log: silentLog,
		database: preparedDatabase(databaseUrl),
	});
	atEnd(() => app.stop());
	return app;
}
