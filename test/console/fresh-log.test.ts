import { afterEach, expect, setSystemTime, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { ANY_REQUEST, logPage } from "../../src/console/log/log-page.ts";
import { withDatabase } from "../support/database.ts";

const { sql, statements } = await withDatabase();
await sql`insert into account (id, email, name) values ('acc', 'acc@example.com', 'acc')`;
await sql`insert into api_key (id, account_id, name, digest, prefix, last_four, models) values ('key', 'acc', 'key', 'd', 'p', 'l', '[]')`;

afterEach(() => void setSystemTime());

test("a long request appears in the request log when it ends, under any filter", async () => {
	// A request that runs across an hour boundary and is not yet in the hourly sums.
	const nowMs = Date.UTC(2026, 10, 20, 12, 20);
	const at = new Date(nowMs - 30 * 60_000);
	await sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, settled_at)
		values (${newUuid()}, 'acc', 'key', 'i', 1, 'm', 'm@1', 'chat', true, 10, 10, 'exact', 'finished', 200, ${at}, ${new Date(nowMs)})`;
	setSystemTime(nowMs);
	const any = { ...ANY_REQUEST, fromMs: nowMs - 7 * 86_400_000 };
	for (const narrowed of [{}, { keyId: "key" }, { model: "m" }, { status: "ok" as const }, { projectId: "" }]) {
		const page = await logPage(statements, "acc", { ...any, ...narrowed }, { asked: 10, after: null });
		expect([narrowed, page.length]).toEqual([narrowed, 1]);
	}
});
