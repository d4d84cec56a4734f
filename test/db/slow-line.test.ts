import { expect, test } from "bun:test";
import { atEnd } from "../support/at-end.ts";
import { ask } from "../support/chat.ts";
import { createTestDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { chatModel, startService } from "../support/service.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { withUpstream } from "../support/upstream-server.ts";

const ROUND_TRIP_MS = 400;
const START_MS_MAX = 60_000;

test.skipIf(!LONG)(
	"a service 400 ms from its database starts within a minute and accepts a key",
	async () => {
		const database = await createTestDatabase();
		const { proxy, url: DATABASE_URL } = withDatabaseProxy(database.url);
		proxy.delay(ROUND_TRIP_MS);
		const upstream = withUpstream();
		const startedMs = performance.now();
		const service = await startService({ database, env: { DATABASE_URL }, models: chatModel({ url: upstream.url }) });
		atEnd(() => service.stop());
		expect(performance.now() - startedMs).toBeLessThan(START_MS_MAX);
		const { secret } = await service.customer();
		expect((await service.post("/v1/chat/completions", secret, ask())).status).toBe(200);
	},
	2 * START_MS_MAX,
);
