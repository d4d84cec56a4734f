import { expect, test } from "bun:test";
import type Stripe from "stripe";
import { silentLog } from "../../src/base/log.ts";
import { saveAutoTopUp, switchOffAutoTopUp } from "../../src/billing/auto-top-ups.ts";
import { createSavedCards } from "../../src/billing/saved-cards.ts";
import { createOperator, revokeOperator } from "../../src/console/operator/operator-admin.ts";
import { createManagementKey, revokeManagementKey } from "../../src/keys/management-key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { auditNote, deleteAuditBeyond, writeAudit } from "../../src/ops/audit.ts";
import type { AuditAction } from "../../src/ops/audit-action.ts";
import { managementClient, memberOf } from "../management/management-client.ts";
import { withService } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { type Answer, mailedLink, operator, PERSON_ENV, signedUp } from "./person.ts";

/** An action and its audit entry are committed in one transaction: after a crash both exist, or neither does. */

const service = await withService({ env: PERSON_ENV });
const { sql, statements } = service.db;
const owner = await signedUp(service);
const { accountId } = owner;
const boss = await operator(service);
// A person's first request creates the person's account.
await boss.get("/api/console/me");
const script = await managementClient(service);
const friend = await signedUp(service);

const call = (method: string, path: string, body?: unknown) => owner.send(method, `/api/console${path}`, body);
const oversee = (path: string, body: unknown) => boss.send("POST", `/api/console/operator${path}`, body);
const key = async (name: string) => (await call("POST", "/keys", { name })).body.key.id as string;
const project = async (name: string) => (await call("POST", "/projects", { name })).body.id as string;

const [changed, rotated, ended] = [await key("1"), await key("2"), await key("3")];
const [byScript, rotatedByScript, endedByScript] = [await key("4"), await key("5"), await key("6")];
const [p1, p2] = [await project("one"), await project("two")];
const [helper, leaver] = [await memberOf(service, accountId), await memberOf(service, accountId)];
const worker = await memberOf(service, accountId);
for (const id of [p1, p2]) await call("PUT", `/projects/${id}/members/${worker}`);
await createOperator(statements, "former@example.com");
const invited = (await call("POST", "/invitations", { email: "gone@example.com", role: "viewer" })).body.id;
await call("POST", "/invitations", { email: friend.email, role: "viewer" });
const token = new URL(await mailedLink(friend)).searchParams.get("token");
const transfer = async () => (await call("POST", "/credit/top-ups/transfer", { usd: "200" })).body.topUp.id;
const [confirmed, rejected, cancelled] = [await transfer(), await transfer(), await transfer()];
await sql`
	insert into passkey (id, user_id, name, public_key, counter)
	select 'pk_1', id, 'a device', 'key', 0 from console_user where email = ${owner.email}`;
const maker = { statements, digest: createDigest(service.app.secrets.keyPepper), serviceName: "tollgate" };
const byCommand = { id: "cli", ip: null };
const aManagementKey = () =>
	createManagementKey(maker, { name: "k", scopes: ["keys:read"], expiresAtMs: null }, byCommand);
const managementKey = await aManagementKey();
const wanted = { account_id: accountId, name: "by a script" };
const usd = (dollars: number) => nanoUsd(dollars * 1_000_000_000);
const reason = "looked at by a person";
const company = {
	...{ issuer: "https://id.example.com", clientId: "c", clientSecret: "s", domain: "example.com", emailTrusted: true },
	...{ roleClaim: null, roleValues: {}, defaultRole: null, required: false },
};
const amounts = { belowNanoUsd: usd(50), amountNanoUsd: usd(100), monthMostNanoUsd: usd(500) };
await sql`
	insert into saved_card (account_id, customer_id, payment_method_id)
	values (${accountId}, 'cus_1', 'pm_1'), (${friend.accountId}, 'cus_2', 'pm_2')`;
await saveAutoTopUp(statements, friend.accountId, amounts);
const anyPage = { checkout: { sessions: { create: async () => ({ id: "cs_1", url: "https://stripe.example.com" }) } } };
const cards = createSavedCards(
	{ statements, stripe: anyPage as Partial<Stripe> as Stripe, log: silentLog },
	{ serviceName: "tollgate" },
);
const page = { email: owner.email, back: "http://127.0.0.1/credit?card=" };
const hook = { mail: "owners", webhookUrl: "https://hooks.example.com/other", events: [] };
await call("PUT", "/batch-notices", { ...hook, webhookUrl: "https://hooks.example.com/one" });
await sql`
	insert into batch_notice (batch_id, account_id, channel, state, next_at)
	values ('batch_1', ${accountId}, 'webhook', 'failed', now() + interval '1 day')`;
const by = (action: AuditAction) => auditNote({ actor: "somebody", action, ip: null });

/** Actions by their name in the audit log, in an order in which each one succeeds. */
const ACTS: readonly (readonly [action: string, act: () => Promise<Answer | object>])[] = [
	["key.create", () => call("POST", "/keys", { name: "new" })],
	["key.update", () => call("PATCH", `/keys/${changed}`, { name: "other" })],
	["key.rotate", () => call("POST", `/keys/${rotated}/rotate`, { graceMs: 0 })],
	["key.revoke", () => call("POST", `/keys/${ended}/revoke`)],
	["project.create", () => call("POST", "/projects", { name: "new" })],
	["project.update", () => call("PATCH", `/projects/${p1}`, { name: "other" })],
	["project.member_add", () => call("PUT", `/projects/${p1}/members/${helper}`)],
	["project.member_remove", () => call("DELETE", `/projects/${p1}/members/${worker}`)],
	["project.archive", () => call("POST", `/projects/${p1}/archive`)],
	["account.rename", () => call("PATCH", "/account", { name: "Other" })],
	["account.time_zone", () => call("PATCH", "/account", { timeZone: "Europe/Berlin" })],
	["member.invite", () => call("POST", "/invitations", { email: "new@example.com", role: "viewer" })],
	["member.uninvite", () => call("DELETE", `/invitations/${invited}`)],
	["member.join", () => friend.send("POST", "/api/console/invitations/accept", { token: token })],
	["member.role", () => call("PATCH", `/members/${helper}`, { role: "admin" })],
	["member.remove", () => call("DELETE", `/members/${leaver}`)],
	["passkey.remove", () => call("DELETE", "/passkeys/pk_1")],
	["topup.create", () => call("POST", "/credit/top-ups/transfer", { usd: "300" })],
	["topup.cancel", () => call("POST", `/credit/top-ups/${cancelled}/cancel`)],
	["topup.confirm", () => oversee(`/top-ups/${confirmed}/confirm`, { transactionReference: "bank 1" })],
	["topup.reject", () => oversee(`/top-ups/${rejected}/reject`, { reason })],
	[
		"account.adjust",
		() =>
			oversee(`/accounts/${accountId}/adjust`, {
				usd: "1",
				reason,
				idempotencyKey: "123e4567-e89b-42d3-a456-426614174000",
			}),
	],
	["account.view", () => oversee(`/accounts/${accountId}/view`, {})],
	["account.suspend", () => oversee(`/accounts/${accountId}/suspend`, { reason })],
	["account.unsuspend", () => oversee(`/accounts/${accountId}/unsuspend`, { reason })],
	["account.create", () => script.send("POST", "/accounts", { email: "new@example.com" })],
	["account.suspend", () => script.send("PATCH", `/accounts/${accountId}`, { state: "suspended", reason })],
	["account.unsuspend", () => script.send("PATCH", `/accounts/${accountId}`, { state: "active", reason })],
	["key.create", () => script.send("POST", "/keys", wanted)],
	["key.update", () => script.send("PATCH", `/keys/${byScript}`, { name: "other" })],
	["key.rotate", () => script.send("POST", `/keys/${rotatedByScript}/rotate`, { grace_seconds: 0 })],
	["key.revoke", () => script.send("POST", `/keys/${endedByScript}/revoke`)],
	["project.create", () => script.send("POST", `/accounts/${accountId}/projects`, { name: "by a script" })],
	["project.update", () => script.send("PATCH", `/projects/${p2}`, { name: "other" })],
	["project.member_add", () => script.send("POST", `/projects/${p2}/members`, { user_id: helper })],
	["project.member_remove", () => script.send("POST", `/projects/${p2}/members/remove`, { user_id: worker })],
	["project.archive", () => script.send("POST", `/projects/${p2}/archive`)],
	["company.set", () => call("PUT", "/company-sign-in", company)],
	["company.remove", () => call("DELETE", "/company-sign-in")],
	["account.alert", () => call("PUT", "/alert", { usd: "20" })],
	["account.alert", () => call("PUT", "/alert", { usd: null })],
	["account.billing_details", () => call("PUT", "/credit/billing-details", { company: "C", address: "", vatId: "" })],
	["batch.notices", () => call("PUT", "/batch-notices", hook)],
	["batch.webhook_secret", () => call("POST", "/batch-notices/secret")],
	["notice.replay", () => call("POST", "/batch-notices/batch_1/replay")],
	["card.add", () => cards.setup(accountId, page, by("card.add")).then(() => ({}))],
	["auto_topup.save", () => saveAutoTopUp(statements, accountId, amounts, by("auto_topup.save")).then(() => ({}))],
	["auto_topup.off", () => switchOffAutoTopUp(statements, friend.accountId, by("auto_topup.off")).then(() => ({}))],
	["operator.create", () => createOperator(statements, "another@example.com")],
	["operator.revoke", () => revokeOperator(statements, "former@example.com")],
	["management_key.create", aManagementKey],
	["management_key.revoke", () => revokeManagementKey(statements, managementKey.id, byCommand).then(() => ({}))],
];

/** Returns the contents of all tables that actions change. Tables that jobs and look-ups change are omitted. */
async function all(): Promise<string> {
	const [row] = await sql`
		select concat((select json_agg(x order by id) from account x),
			(select json_agg(x order by id) from project x),
			(select json_agg(to_jsonb(x) - 'last_used_at' order by id) from api_key x),
			(select json_agg(x order by id) from ledger_entry x),
			(select json_agg(x order by user_id, account_id) from member x),
			(select json_agg(x order by user_id) from project_member x),
			(select json_agg(x order by id) from invitation x),
			(select json_agg(x order by id) from top_up x),
			(select json_agg(x order by top_up_id) from top_up_check x),
			(select json_agg(x order by id) from passkey x),
			(select json_agg(to_jsonb(x) - 'look_at' order by account_id) from auto_top_up x),
			(select json_agg(x) from company_sign_in x),
			(select json_agg(x order by account_id) from credit_alert x),
			(select json_agg(x order by account_id) from billing_details x),
			(select json_agg(x order by account_id) from batch_notice_setting x),
			(select json_agg(x order by batch_id) from batch_notice x),
			(select json_agg(x order by id) from card_setup x),
			(select json_agg(to_jsonb(x) - 'last_used_at' order by id) from management_key x),
			(select json_agg(array[id, operator::text] order by id) from console_user x)) as rows`;
	return row?.rows;
}

const lines = () =>
	sql<{ action: string; account_id: string | null }[]>`select action, account_id from audit_event order by id desc`;

test("no change in the console succeeds if its audit entry cannot be written", async () => {
	await sql`
		create function test_no_line() returns trigger language plpgsql as $$
		begin
			raise exception 'the console dies here';
		end $$`;
	await sql`create trigger test_no_line before insert on audit_event for each row execute function test_no_line()`;
	try {
		const before = await all();
		for (const [action, act] of ACTS) {
			const outcome = await act().then(
				(answer) => ("status" in answer ? answer.status : "done"),
				() => "failed",
			);
			expect([action, outcome]).toEqual([action, outcome === "failed" ? "failed" : 500]);
			expect([action, (await all()) === before]).toEqual([action, true]);
		}
	} finally {
		await sql`drop trigger test_no_line on audit_event`;
	}
});

test("each successful change in the console has one audit entry", async () => {
	for (const [action, act] of ACTS) {
		const before = await lines();
		const answer = await act();
		expect([action, "status" in answer ? answer.status : 200]).toEqual([action, 200]);
		const after = await lines();
		const fresh = after.slice(0, after.length - before.length);
		const ofNoAccount = /^(operator|management_key|passkey)/.test(action);
		expect(fresh).toEqual([{ action, account_id: ofNoAccount ? null : expect.any(String) }]);
	}
});

test("a revocation is audited before it takes effect, and its entry gets the outcome", async () => {
	const [late, lateByScript] = [await key("late"), await key("late")];
	const [p3, p4] = [await project("three"), await project("four")];
	await sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values ('silent', 1, 1, 'live', 3600000, now() + interval '1 hour')`;
	const before = (await lines()).length;
	const waiting = [
		call("POST", `/keys/${late}/revoke`),
		script.send("POST", `/keys/${lateByScript}/revoke`),
		call("POST", `/projects/${p3}/archive`),
		script.send("POST", `/projects/${p4}/archive`),
		oversee(`/accounts/${friend.accountId}/suspend`, { reason }),
	];
	const noted = () => waitFor(async () => (await lines()).length === before + waiting.length, "a line of each");
	await noted();
	// Sent last, because a suspended account cannot archive its project.
	waiting.push(script.send("PATCH", `/accounts/${accountId}`, { state: "suspended", reason }));
	await noted();
	await sql`update instance_beat set state = 'left' where id = 'silent'`;
	expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
	const told = await sql`select detail from audit_event order by id desc limit ${waiting.length}`;
	for (const { detail } of told) expect(detail).toMatchObject({ effective: true, elapsedMs: expect.any(Number) });
});

test("values above 4,000 characters in an audit entry are cut one by one", () => {
	const detailOf = (name: string) => auditNote({ actor: "a", action: "key.update", ip: null, detail: { name } }).detail;
	const longest = "x".repeat(4_000 - JSON.stringify({ name: "" }).length);
	expect(detailOf(longest)).toEqual({ name: longest });
	expect(detailOf(`${longest}x`)).toEqual({ name: `${"x".repeat(200)}…` });
});

test("an account's audit log keeps the newest entries and those of money and members", async () => {
	const older = ["project.update", "key.update", "topup.create", "member.join", "account.suspend"] as const;
	const actions = [...older, "account.rename", "key.revoke"] as const;
	for (const action of actions)
		for (const actor of ["usr_1", script.id])
			await writeAudit(statements, { actor, action, subject: "s", accountId: "acc_many", ip: null });
	await deleteAuditBeyond(statements, 2);
	const left = (actor: string) => sql<{ action: AuditAction }[]>`
		select action from audit_event where account_id = 'acc_many' and actor = ${actor} order by id`;
	expect((await left("usr_1")).map(({ action }) => action)).toEqual(actions.slice(2));
	expect(await left(script.id)).toHaveLength(actions.length);
});
