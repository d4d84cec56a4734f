import { expect, test } from "bun:test";
import { newId } from "../../src/base/id.ts";
import { sendInvitation } from "../../src/console/members/invitations.ts";
import type { Statements } from "../../src/db/statements.ts";
import { createManagementKey } from "../../src/keys/management-key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { managementClient } from "../management/management-client.ts";
import { withService } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { PERSON_ENV, signedUp } from "./person.ts";

/** Limits on numbers of objects must hold even if several consoles create objects at the same time. */

const service = await withService({ env: PERSON_ENV });
const { sql, statements } = service.db;

const idOf = async (person: { get: (path: string) => Promise<{ body: { user: { id: string } } }> }) =>
	(await person.get("/api/console/me")).body.user.id;

test("an account's keys stay within the limit, and a repeated creation adds none", async () => {
	const owner = await signedUp(service);
	const script = await managementClient(service);
	const { accountId } = owner;
	const old = (await owner.send("POST", "/api/console/keys", { name: "old" })).body.key.id;
	await sql`
		insert into api_key (id, account_id, name, digest, prefix, last_four)
		select 'key_many_' || n, ${accountId}, 'k', 'digest_' || n, 'p', '0000' from generate_series(1, 995) n`;
	const rotation = { graceMs: 60_000, token: "a-token-of-one-rotation" };
	const rotate = () => owner.send("POST", `/api/console/keys/${old}/rotate`, rotation);
	const token = crypto.randomUUID();
	const byScript = () => script.send("POST", "/keys", { account_id: accountId, name: "s", client_token: token });
	const made = await Promise.all([
		rotate(),
		byScript(),
		...Array.from({ length: 6 }, () => owner.send("POST", "/api/console/keys", { name: "k" })),
		...Array.from({ length: 4 }, () => script.send("POST", "/keys", { account_id: accountId, name: "s" })),
	]);
	const refused = made.filter(({ status }) => status === 409);
	expect([made.filter(({ status }) => status === 200).length, refused.length]).toEqual([4, 8]);
	expect(refused[0]?.body.error.message).toBe("An account has at most 1000 keys in use. Revoke some first.");
	const [row] = await sql`select count(*) as n from api_key where account_id = ${accountId} and state = 'active'`;
	expect(Number(row?.n)).toBe(1_000);
	expect((await rotate()).body.key?.id).toBe(made[0]?.body.key?.id);
	expect((await byScript()).body.id).toBe(made[1]?.body.id);
});

test("expired keys do not count towards the limit and cannot be renewed beyond it", async () => {
	const owner = await signedUp(service);
	const script = await managementClient(service);
	const { accountId } = owner;
	const { id } = (await owner.send("POST", "/api/console/keys", { name: "in use" })).body.key;
	await sql`
		insert into api_key (id, account_id, name, digest, prefix, last_four, replaced_by, expires_at)
		select 'key_ended_' || n, ${accountId}, 'k', 'ended_' || n, 'p', '0000', case when n % 2 = 0 then 'key_next' end, now() - interval '1 minute'
		from generate_series(1, 1000) n`;
	await sql`insert into budget (id, kind, account_id) select id, 'key', account_id from api_key where id like 'key_ended_%'`;
	const rotation = { graceMs: 3_600_000, token: crypto.randomUUID() };
	expect((await owner.send("POST", `/api/console/keys/${id}/rotate`, rotation)).status).toBe(200);
	expect((await owner.send("POST", "/api/console/keys", { name: "new" })).status).toBe(200);
	expect((await script.send("POST", "/keys", { account_id: accountId, name: "s" })).status).toBe(200);
	await sql`update api_key set expires_at = now() + interval '1 hour' where account_id = ${accountId} and id in (
		select id from api_key where account_id = ${accountId} and id like 'key_ended_%' order by id limit 995)`;
	const [first, second, third] = (
		await sql`select id from api_key where account_id = ${accountId} and expires_at < now() order by id`
	).map((row) => row.id);
	const later = { expiresAtMs: Date.now() + 3_600_000 };
	const byOwner = (key: string, change: object) => owner.send("PATCH", `/api/console/keys/${key}`, change);
	const byScript = (key: string) => script.send("PATCH", `/keys/${key}`, { expires_at: null });
	const made = await Promise.all([byOwner(first, later), byScript(second), byOwner(third, later)]);
	expect(made.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
	expect((await owner.send("POST", "/api/console/keys", { name: "one more" })).status).toBe(409);
	expect((await byOwner(id, later)).status).toBe(200);
	expect((await byOwner(made[0]?.status === 200 ? second : first, { name: "ended" })).status).toBe(200);
});

/** Starts a second creation while the transaction of the first, which reached the limit, is open. */
async function secondIsMade(make: (by: Statements, nth: number) => Promise<unknown>): Promise<boolean> {
	const { second } = await sql.begin(async (held) => {
		// Counters of mails are committed immediately, outside the transaction.
		const inTransaction = ((...query: Parameters<typeof sql>) =>
			query[0].join("").includes("rate_count")
				? statements(query[0] as TemplateStringsArray, ...(query.slice(1) as []))
				: held(...query)) as unknown as Statements;
		await make(inTransaction, 1);
		let over = false;
		const second = Promise.allSettled([make(statements, 2)]).finally(() => {
			over = true;
		});
		await waitFor(async () => {
			const rows = await sql`
				select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid()`;
			return over || rows.length > 0;
		}, "the second one to be made, or to wait");
		return { second };
	});
	const [outcome] = await second;
	return outcome.status === "fulfilled";
}

test("invitations of an account stay within the limit", async () => {
	const owner = await signedUp(service);
	const { accountId } = owner;
	const invitedBy = await idOf(owner);
	await sql`
		insert into invitation (id, account_id, email, role, token_hash, invited_by, expires_at)
		select 'inv_many_' || n, ${accountId}, n || '@example.com', 'viewer', 'hash' || n, ${invitedBy}, now() + interval '1 day'
		from generate_series(1, 49) n`;
	const made = secondIsMade((by, nth) =>
		sendInvitation(by, accountId, { email: `one-more-${nth}@example.com`, role: "viewer", invitedBy }),
	);
	expect(await made).toBe(false);
	const open = async () =>
		(await sql`select email, role from invitation where account_id = ${accountId} order by email`).map(
			({ email, role }) => [email, role],
		);
	expect(await open()).toHaveLength(50);
	// Inviting the same address again does not count towards the limit.
	const again = await owner.send("POST", "/api/console/invitations", { email: "7@example.com", role: "developer" });
	expect(again.status).toBe(200);
	expect(await open()).toHaveLength(50);
	expect(await open()).toContainEqual(["7@example.com", "developer"]);
	const more = { email: "one-more@example.com", role: "viewer" };
	expect((await owner.send("POST", "/api/console/invitations", more)).status).toBe(409);
});

test("passkeys of a person stay within the limit", async () => {
	const userId = await idOf(await signedUp(service));
	const made = secondIsMade(async (by) => {
		const [row] = await by<{ added: boolean }>`
			select passkey_add(${newId("pk")}, ${userId}, 'a device', 'key', 0::bigint, 1) as added`;
		if (row?.added !== true) throw new Error("no room");
	});
	expect(await made).toBe(false);
});

test("management keys stay within the limit", async () => {
	await sql`
		insert into management_key (id, name, digest, prefix, last_four, scopes, made_by)
		select 'mgk_many_' || n, 'k', 'digest_' || n, 'p', '0000', '[]', 'cli'
		from generate_series(1, (select 199 - count(*) from management_key where revoked_at is null)) n`;
	const digest = createDigest(service.app.secrets.keyPepper);
	const wanted = { name: "k", scopes: ["accounts:read"], expiresAtMs: null };
	const made = secondIsMade((by) =>
		createManagementKey({ statements: by, digest, serviceName: "tollgate" }, wanted, { id: "cli", ip: null }),
	);
	expect(await made).toBe(false);
});
