/** Log and database contain no secret of a management key or of a created key, and no idempotency token. */
import { expect, test } from "bun:test";
import { withChat } from "../support/service.ts";
import { managementCall, managementClient } from "./management-client.ts";

const { service } = await withChat({ dialect: "vllm" });
const script = await managementClient(service);
const { accountId } = await service.customer();

test("no management secret appears in a database row or log line", async () => {
	const tokens = ["canary-of-a-key", "canary-of-a-rotation", "canary-of-credit", "canary-of-an-account"];
	const [ofKey, ofRotation, ofCredit, ofAccount] = tokens;
	const made = await script.send("POST", "/keys", { account_id: accountId, name: "canary", client_token: ofKey });
	const body = { grace_seconds: 0, client_token: ofRotation };
	const rotated = await script.send("POST", `/keys/${made.body.id}/rotate`, body);
	const credit = { account_id: accountId, amount_usd: "1", reason: "canary", client_token: ofCredit };
	await script.send("POST", "/credit-adjustments", credit);
	await script.send("POST", "/accounts", { email: "canary@example.com", client_token: ofAccount });
	const guess = `tgm_${"guess".repeat(10)}`;
	await managementCall(service, guess, "GET", "/self");
	await service.db.sql`alter table api_key rename to api_key_away`;
	const failed = await script.get(`/keys/${rotated.body.id}`);
	await service.db.sql`alter table api_key_away rename to api_key`;
	expect([failed.status, failed.body.error.message]).toEqual([
		500,
		"Internal error. Please try again, and contact the operator with the request ID if it persists.",
	]);

	const secrets = [script.secret, made.body.secret, rotated.body.secret, guess, ...tokens];
	expect(secrets.every((secret) => typeof secret === "string" && secret.length > 10)).toBe(true);
	const tables = await service.db.sql`select tablename from pg_tables where schemaname = 'public'`;
	const rows = await Promise.all(
		tables.map(async ({ tablename }) => {
			const found = await service.db.sql.unsafe(`select t::text as row from "${tablename}" t`);
			return found.map(({ row }) => String(row)).join("\n");
		}),
	);
	const text = `${rows.join("\n")}\n${JSON.stringify(service.logged)}`;
	expect(text).toContain(script.id);
	for (const secret of secrets) expect([secret, text.includes(secret)]).toEqual([secret, false]);
});
