import { beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/id.ts";
import { confirmTopUp, createTopUp, rejectTopUp } from "../../src/billing/top-ups.ts";
import { ALERT_TYPES, findAlerts, notifyExpiringKeys, notifyRetiringModels } from "../../src/console/alerts/alerts.ts";
import { ROLES, roleHasRight } from "../../src/console/members/roles.ts";
import { type NoticeDeps, sendNotices } from "../../src/console/notices/notices.ts";
import type { WebhookMessage } from "../../src/console/notices/webhook.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { mailedBelow } from "../../src/web/labels.ts";
import { rolledBack, withDatabase } from "../support/database.ts";
import { payIn } from "../support/paid-account.ts";
import { SET_AUTO_PLANS } from "../support/postgres.ts";
import { foldAll } from "../support/sums.ts";
import { zoneByDay } from "../support/zone-by-day.ts";
import { mailTexts } from "./mailbox.ts";

/** Each crossed threshold is reported once to the recipients who enabled the notice, however many consoles run. */

const db = await withDatabase();
const never = new AbortController().signal;
const mails: ReturnType<typeof mailTexts>[] = [];
const calls: WebhookMessage[] = [];
const deps: NoticeDeps = {
	statements: db.statements,
	clock: systemClock,
	mailer: { deliver: async (mail) => mails.push(mailTexts(mail)) > 0 },
	sendWebhook: async (message) => {
		calls.push(message);
		return { status: 200 };
	},
	figures: { notice() {} },
	webhookSecretOf: (salt) => `whsec_${salt}`,
	origin: () => "https://service.example",
	serviceName: "service",
};

beforeEach(async () => {
	mails.length = 0;
	calls.length = 0;
});

async function newAccount(events: readonly string[], credit = 100_000_000_000) {
	const id = newId("acc");
	await db.sql`insert into account (id, email, name) values (${id}, ${`${id}@account.example`}, 'A name that is written')`;
	await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${id}, 'account', ${id}, ${credit})`;
	for (const role of ["owner", "billing", "developer", "viewer"]) {
		const user = `${role}_${id}`;
		await db.sql`insert into console_user (id, name, email, email_verified) values (${user}, 'P', ${`${user}@example.com`}, true)`;
		await db.sql`insert into member (user_id, account_id, role) values (${user}, ${id}, ${role})`;
	}
	await db.sql`insert into batch_notice_setting (account_id, webhook_url, webhook_salt, events)
		values (${id}, 'https://hook.example/', 'salt', ${JSON.stringify(events)}::text::jsonb)`;
	return id;
}

async function newKey(accountId: string, more: { cap?: number; expires?: string } = {}) {
	const id = newId("key");
	await db.sql`insert into api_key (id, account_id, name, digest, prefix, last_four, cap_nano_usd, expires_at)
		values (${id}, ${accountId}, 'A name that is written', ${id}, 'sk_', 'last', ${more.cap ?? null}, ${more.expires ?? null})`;
	await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${id}, 'key', ${accountId}, ${more.cap ?? null})`;
	return id;
}

async function spend(accountId: string, keyId: string, charged: number, hoursAgo = 0): Promise<void> {
	await db.sql`insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at)
		values (gen_random_uuid(), ${accountId}, ${keyId}, 'i', 1, 'm', 'r', 'chat', false, ${charged}, ${charged}, 'exact', 'finished', 200,
			date_trunc('hour', now(), 'UTC') - ${hoursAgo} * interval '1 hour')`;
	for (const budget of [accountId, keyId])
		await db.sql`insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state) values (${budget}, 'i', 1, ${charged}, ${charged}, 'closed')
			on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = lease.granted_nano_usd + ${charged}, settled_nano_usd = lease.settled_nano_usd + ${charged}`;
	await foldAll(db.statements);
}

/** Checks for alerts and sends notices as two concurrent consoles would, twice. */
async function lookAndTell(): Promise<void> {
	await Promise.all(Array.from({ length: 4 }, () => findAlerts(db.statements)));
	await findAlerts(db.statements);
	await Promise.all(Array.from({ length: 2 }, () => notifyExpiringKeys(db.statements)));
	for (let turn = 0; turn < 3; turn++)
		for (const channel of ["webhook", "mail"] as const) await sendNotices(deps, channel, never);
}
const told = () => calls.map(({ body }) => JSON.parse(body)).map(({ type, data }) => [type, data.percent ?? null]);

test("a cap is reported at 80 % and at 100 %, once each, and again after its change", async () => {
	const id = await newAccount(["key.cap_reached"]);
	const key = await newKey(id, { cap: 1_000_000_000 });
	await spend(id, key, 799_999_999);
	await lookAndTell();
	expect(told()).toEqual([]);
	await spend(id, key, 1);
	await lookAndTell();
	expect(told()).toEqual([["key.cap_reached", 80]]);
	expect(mails.map(({ to }) => to).sort()).toEqual([`billing_${id}@example.com`, `owner_${id}@example.com`]);
	await spend(id, key, 1);
	await lookAndTell();
	expect(told()).toHaveLength(1);
	await spend(id, key, 199_999_999);
	await lookAndTell();
	expect(told()).toEqual([
		["key.cap_reached", 80],
		["key.cap_reached", 100],
	]);
	const { id: event, data, object } = JSON.parse(calls[1]?.body ?? "{}");
	expect([object, data.cap_usd, data.spent_usd, data.key_id, data.last_four]).toEqual([
		"event",
		"1.00",
		"1.00",
		key,
		"last",
	]);
	expect(calls[1]?.id).toBe(event);
	expect(mails[0]?.text).toContain("USD 0.80 of USD 1.00");
	await db.sql`update api_key set cap_nano_usd = 1100000000 where id = ${key}`;
	await db.sql`update budget set limit_nano_usd = 1100000000 where id = ${key}`;
	await spend(id, key, 1);
	await lookAndTell();
	expect(told()[2]).toEqual(["key.cap_reached", 80]);
	for (const { text, subject } of mails) expect(text + subject).not.toContain("A name that is written");
	for (const { body } of calls) expect(body).not.toContain("A name that is written");
});

test("a project's cap is reported at 80 and 100 % of the period, over all its keys", async () => {
	const id = await newAccount(["project.cap_reached"]);
	await db.sql`update account set time_zone = ${zoneByDay()} where id = ${id}`;
	const project = newId("proj");
	await db.sql`select project_create(${project}, ${id}, ${JSON.stringify({ name: "A name that is written", capNanoUsd: 1_000_000_000, capPeriod: "month" })}::text::jsonb)`;
	const [budget] =
		await db.sql`select cap_budget(p) as id, cap_open(cap_budget(p)) as made from project p where p.id = ${project}`;
	expect(budget?.made).toBe("opened");
	const keys = [await newKey(id), await newKey(id)];
	await db.sql`update api_key set project_id = ${project} where id in ${db.sql(keys)}`;
	const spendAll = async (key: string, charged: number) => {
		await db.sql`insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state) values (${budget?.id}, 'i', 1, ${charged}, ${charged}, 'closed')
			on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = lease.granted_nano_usd + ${charged}, settled_nano_usd = lease.settled_nano_usd + ${charged}`;
		await spend(id, key, charged);
		await lookAndTell();
	};
	await spendAll(keys[0] ?? "", 799_999_999);
	expect(told()).toEqual([]);
	await spendAll(keys[1] ?? "", 1);
	expect(told()).toEqual([["project.cap_reached", 80]]);
	await spendAll(keys[1] ?? "", 200_000_000);
	expect(told()[1]).toEqual(["project.cap_reached", 100]);
	await spendAll(keys[0] ?? "", 1);
	expect(told()).toHaveLength(2);
	const { data } = JSON.parse(calls[1]?.body ?? "{}");
	expect(data).toEqual({ project_id: project, percent: 100, period: "month", cap_usd: "1.00", spent_usd: "1.00" });
	expect(mails[0]?.text).toContain("USD 0.80 of USD 1.00 this month");
	for (const { text, subject } of mails) expect(text + subject).not.toContain("A name that is written");
});

test("the credit page shows who gets the low-credit mail and at which balance", async () => {
	const promise = mailedBelow("$0.50");
	for (const role of ROLES)
		expect([role, promise.toLowerCase().includes(role)]).toEqual([role, roleHasRight(role, "notices.get")]);
	expect(promise).toContain("when the balance falls below $0.50");
	const id = await newAccount(["credit.low"], 1_000_000_000);
	await db.sql`insert into credit_alert (account_id, threshold_nano_usd) values (${id}, 500000000)`;
	// Leases hold the difference: the balance is above the threshold, the available credit below it.
	await db.sql`insert into lease (budget_id, instance_id, epoch, granted_nano_usd, state) values (${id}, 'gone', 1, 800000000, 'open')`;
	await db.sql`update budget set drawn_nano_usd = drawn_nano_usd + 800000000 where id = ${id}`;
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	expect(Number((await accountBalance(db.statements, id)).available)).toBe(200_000_000);
	mails.length = 0;
	await lookAndTell();
	expect(told()).toEqual([]);
});

test("low credit is reported once each time the balance falls below the threshold", async () => {
	const id = await newAccount(["credit.low"], 1_000_000_000);
	const key = await newKey(id);
	await db.sql`insert into credit_alert (account_id, threshold_nano_usd) values (${id}, 500000000)`;
	mails.length = 0;
	await spend(id, key, 500_000_000);
	await lookAndTell();
	expect(told()).toEqual([]);
	await spend(id, key, 1);
	await spend(id, key, 1);
	await lookAndTell();
	await lookAndTell();
	expect(told()).toEqual([["credit.low", null]]);
	await payIn(db.statements, id);
	await lookAndTell();
	await spend(id, key, 100_000_000_000);
	await lookAndTell();
	expect(told()).toEqual([
		["credit.low", null],
		["credit.low", null],
	]);
});

test("a mail states its reason, and a mandatory mail names no setting to disable it", async () => {
	const id = await newAccount(["key.cap_reached"], 0);
	await db.sql`insert into credit_alert (account_id, threshold_nano_usd) values (${id}, 500000000)`;
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	await db.sql`select alert_notice(${id}, 'auto_top_up.stopped', '{"state":"stopped","reason":"declined"}', '["owner"]', true)`;
	await spend(id, await newKey(id, { cap: 1 }), 1);
	await lookAndTell();
	const why = new Map(mails.map(({ subject, text }) => [subject, text.trim().split("\n").at(-1)]));
	expect(Object.fromEntries(why)).toEqual({
		"Low credit (service)":
			"You receive this mail because your account has a low-credit alert: https://service.example/credit",
		"Automatic top-ups have stopped (service)":
			"You receive this mail because your account has automatic top-ups: https://service.example/credit",
		"A key has used 100 % of its cap (service)":
			"You receive this mail because your account has enabled this notification: https://service.example/settings",
	});
});

test("a confirmed top-up is reported once", async () => {
	const id = await newAccount(["top_up.confirmed"]);
	const made = {
		accountId: id,
		amountNanoUsd: nanoUsd(250_000_000_000),
		method: "transfer" as const,
		reference: `s ${id}`,
	};
	const { id: topUp } = await createTopUp(db.statements, made);
	await lookAndTell();
	expect(told()).toEqual([]);
	await confirmTopUp(db.statements, topUp, "test");
	await lookAndTell();
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	await lookAndTell();
	await db.sql`delete from alert_mark where account_id = ${id}`;
	await db.sql`update batch_notice_setting set events_at = now() where account_id = ${id}`;
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	// Top-ups confirmed before the account enabled the notice must not be reported.
	await lookAndTell();
	expect(calls.map(({ body }) => JSON.parse(body).data)).toEqual([
		{ id: topUp, amount_usd: "250.00", method: "transfer" },
	]);
});

test("a confirmed top-up is reported although many newer top-ups exist", async () => {
	const id = await newAccount(["top_up.confirmed"]);
	const wanted = (reference: string) =>
		createTopUp(db.statements, {
			...{ accountId: id, amountNanoUsd: nanoUsd(250_000_000_000), method: "transfer", reference },
		});
	const { id: old } = await wanted(`old ${id}`);
	for (let nth = 0; nth < 21; nth++) await rejectTopUp(db.statements, (await wanted(`${nth} ${id}`)).id, "test");
	await confirmTopUp(db.statements, old, "test");
	await lookAndTell();
	expect(calls.map(({ body }) => JSON.parse(body).data.id)).toEqual([old]);
});

test("two settings for low credit cause one mail, to roles that may see credit", async () => {
	for (const events of [[], ["credit.low"]]) {
		mails.length = 0;
		calls.length = 0;
		const id = await newAccount(events, 1_000);
		await db.sql`insert into credit_alert (account_id, threshold_nano_usd) values (${id}, 500)`;
		await spend(id, await newKey(id), 501);
		await lookAndTell();
		expect(mails.map(({ to }) => to).sort()).toEqual([`billing_${id}@example.com`, `owner_${id}@example.com`]);
		expect(mails[0]?.text).toContain(`https://service.example/credit?account=${id}`);
		// Only the two roles for credit get a row; a failed row for another member would be visible as an error.
		expect(await db.sql`select 1 from batch_notice where account_id = ${id} and channel = 'mail'`).toHaveLength(2);
		expect(told()).toEqual(events.map((type) => [type, null]));
	}
});

test("a member who loses the right to credit gets no credit mail that was waiting", async () => {
	const id = await newAccount(["top_up.confirmed"]);
	await payIn(db.statements, id);
	await findAlerts(db.statements);
	await db.sql`update member set role = 'developer' where user_id = ${`billing_${id}`}`;
	for (const channel of ["webhook", "mail"] as const) await sendNotices(deps, channel, never);
	expect(mails.map(({ to }) => to)).toEqual([`owner_${id}@example.com`]);
});

test("a top-up booked during a check for notices is reported by the next check", async () => {
	const id = await newAccount(["top_up.confirmed"]);
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	await db.sql.begin(async (look) => {
		await look`select alerts_look(20, '["owner"]')`;
		// A booking that waited for a lock of the check would fail after half a second.
		await payIn(db.statements, id);
	});
	await lookAndTell();
	expect(told()).toEqual([["top_up.confirmed", null]]);
	// The check must not delete the `alert_touched` row of a booking that is not committed yet.
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	await db.sql.begin(async (booking) => {
		await booking`insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note)
			values (${newId("led")}, ${id}, 'adjustment', 1, ${newId("ref")}, 'test', '')`;
		expect(await db.sql`select alerts_look(20, '["owner"]') as seen`).toMatchObject([{ seen: 0 }]);
	});
	expect(await db.sql`select alerts_look(20, '["owner"]') as seen`).toMatchObject([{ seen: 1 }]);
});

test("recent users of a model get notices 30 and 7 days before its retirement", async () => {
	const asked = await newAccount(["model.retiring"]);
	const silent = await newAccount([]);
	const other = await newAccount(["model.retiring"]);
	const longAgo = await newAccount(["model.retiring"]);
	await spend(asked, await newKey(asked), 1);
	await spend(silent, await newKey(silent), 0, 29 * 24);
	await spend(longAgo, await newKey(longAgo), 1, 31 * 24);
	await spend(other, await newKey(other), 1);
	for (const id of [asked, silent, longAgo])
		await db.sql`update usage_hour set model = 'leaves' where account_id = ${id}`;
	const startMs = Date.UTC(2027, 0, 1);
	const look = async (daysBefore: number, retiresOn = "2027-01-01") => {
		mails.length = 0;
		calls.length = 0;
		const models = [{ id: "leaves", retiresOn }, { id: "stays" }, { id: "gone", retiresOn: "2020-01-01" }];
		const looks = Array.from({ length: 3 }, () =>
			notifyRetiringModels(db.statements, models, startMs - daysBefore * 86_400_000),
		);
		await Promise.all(looks);
		await lookAndTell();
		return [calls.map(({ body }) => JSON.parse(body).data), new Set(mails.map(({ to }) => to))];
	};
	const none = [[], new Set<string>()];
	expect(await look(30.001)).toEqual(none);
	const people = new Set([asked, silent].flatMap((id) => [`owner_${id}@example.com`, `billing_${id}@example.com`]));
	const told = [[{ model: "leaves", retires_on: "2027-01-01" }], people];
	expect(await look(30)).toEqual(told);
	expect(await look(7.001)).toEqual(none);
	expect(await look(7)).toEqual(told);
	expect(mails[0]?.text).toContain("The model leaves retires on 2027-01-01");
	// This mail is mandatory, so its text must not mention a setting that disables it.
	for (const { text, german } of mails) {
		expect(text).toContain("\nYou receive this mail because your account used the model recently.\n");
		expect(german?.text).toContain(
			"\nSie erhalten diese E-Mail, weil Ihr Konto das Modell in letzter Zeit benutzt hat.\n",
		);
	}
	expect(await look(0.001)).toEqual(none);
	expect(await look(0)).toEqual(none);
	expect(await look(6, "2027-01-02")).toEqual([[{ model: "leaves", retires_on: "2027-01-02" }], people]);
});

test("a key's expiry is reported once, a week before, and again if it is changed", async () => {
	const id = await newAccount(["key.expiring"]);
	const in6 = new Date(Date.now() + 6 * 86_400_000).toISOString();
	const key = await newKey(id, { expires: in6 });
	await newKey(id, { expires: new Date(Date.now() + 8 * 86_400_000).toISOString() });
	await newKey(id, { expires: new Date(Date.now() - 60_000).toISOString() });
	const replaced = await newKey(id, { expires: in6 });
	await db.sql`update api_key set replaced_by = ${key} where id = ${replaced}`;
	await lookAndTell();
	await lookAndTell();
	expect(calls.map(({ body }) => JSON.parse(body).data.key_id)).toEqual([key]);
	await db.sql`update api_key set expires_at = expires_at - interval '1 hour' where id = ${key}`;
	await lookAndTell();
	expect(calls).toHaveLength(2);
});

test("an hour with three times the average usage is reported, at most once a day", async () => {
	const id = await newAccount(["spend.unusual"]);
	await spend(id, await newKey(id), 50_000_000_000);
	await lookAndTell();
	expect(told()).toEqual([]);
	const WEEK = 7 * 24;
	const other = await newAccount(["spend.unusual"]);
	const theirs = await newKey(other);
	// High spending in another hour of the week before must not count towards the average.
	await spend(other, theirs, 90_000_000_000, WEEK + 1);
	await spend(other, theirs, 4_000_000_000, 2 * WEEK);
	await spend(other, theirs, 12_000_000_000);
	await lookAndTell();
	expect(told()).toEqual([]);
	await spend(other, theirs, 1);
	await lookAndTell();
	await spend(other, theirs, 1);
	await lookAndTell();
	expect(calls.map(({ body }) => JSON.parse(body).data)).toEqual([
		{ hour: expect.stringMatching(/:00:00Z$/), spent_usd: "12.000000001", most_usd: "4.00" },
	]);
	const small = await newAccount(["spend.unusual"]);
	const smallKey = await newKey(small);
	await spend(small, smallKey, 1, WEEK + 1);
	await spend(small, smallKey, 4_999_999_999);
	await lookAndTell();
	expect(calls).toHaveLength(1);
});

test("an account is checked for notices only once it has enabled some", async () => {
	const id = await newAccount([]);
	const key = await newKey(id, { cap: 1_000, expires: new Date(Date.now() + 86_400_000).toISOString() });
	await spend(id, key, 1_000);
	expect(await db.sql`select * from alert_touched where account_id = ${id}`).toHaveLength(0);
	await db.sql`insert into alert_touched (account_id) values (${id})`;
	await lookAndTell();
	expect([mails, calls]).toEqual([[], []]);
	expect(await db.sql`select * from alert_mark where account_id = ${id}`).toHaveLength(0);
	await db.sql`update batch_notice_setting set events = ${JSON.stringify(ALERT_TYPES)}::text::jsonb where account_id = ${id}`;
	await spend(id, key, 0);
	await lookAndTell();
	expect(told().sort()).toEqual([
		["key.cap_reached", 100],
		["key.expiring", null],
	]);
});

test("a check for notices that failed is repeated and creates the same notice", async () => {
	const id = await newAccount(["key.cap_reached"]);
	const key = await newKey(id, { cap: 1_000 });
	await spend(id, key, 1_000);
	await db.sql
		.begin(async (transaction) => {
			await transaction`select alerts_look(20, '["owner"]')`;
			throw new Error("died");
		})
		.catch(() => {});
	await lookAndTell();
	expect(told()).toEqual([["key.cap_reached", 100]]);
	await db.sql`update batch_notice set state = 'waiting', attempts = 0, next_at = now() where account_id = ${id} and channel = 'webhook'`;
	await lookAndTell();
	expect(calls).toHaveLength(2);
	expect([calls[1]?.id, calls[1]?.body]).toEqual([calls[0]?.id ?? "", calls[0]?.body ?? ""]);
});

/** Inserts notices that are an hour overdue: all of one account, or each of a different account. */
async function crowd(type: string | null, from: number, to: number, account: string | null = null): Promise<void> {
	await db.sql`
		insert into batch_notice (batch_id, account_id, channel, user_id, type, data, next_at)
		select coalesce(${account}::text, 'many') || n, coalesce(${account}::text, 'many' || n), 'mail', 'nobody', ${type}::text, '{}', now() - interval '1 hour'
		from generate_series(${from}::int, ${to}::int) n`;
}

test("low credit is reported in the next run although many other notices wait", async () => {
	await db.sql`truncate batch_notice`;
	await crowd("model.retiring", 1, 10_000);
	await crowd(null, 1, 1_000, "flood");
	const id = await newAccount(["credit.low"], 1_000);
	await db.sql`insert into credit_alert (account_id, threshold_nano_usd) values (${id}, 500)`;
	await spend(id, await newKey(id), 501);
	await findAlerts(db.statements);
	await sendNotices(deps, "mail", never);
	expect(mails.map(({ to }) => to).sort()).toEqual([`billing_${id}@example.com`, `owner_${id}@example.com`]);
	const tried = async () => {
		const rows = await db.sql`
			select coalesce(type, 'batch') as type, count(*)::int as rows from batch_notice where attempts > 0 group by 1`;
		return Object.fromEntries(rows.map(({ type, rows }) => [type, rows]));
	};
	expect(await tried()).toEqual({ batch: 4, "credit.low": 2, "model.retiring": 14 });
	// Many notices of one kind must not delay notices of other kinds.
	await db.sql`update batch_notice set attempts = 0`;
	await crowd("key.expiring", 20_001, 20_100);
	await db.sql`update batch_notice set next_at = now() - interval '1 minute' where account_id = 'flood'`;
	await sendNotices(deps, "mail", never);
	expect(await tried()).toEqual({ batch: 4, "key.expiring": 12, "model.retiring": 4 });
});

test("an account's thousand notices delay no other account, and none is lost", async () => {
	await db.sql`truncate batch_notice`;
	await crowd(null, 1, 1_000, "flood");
	await crowd(null, 1, 1);
	await db.sql`update batch_notice set next_at = now() where account_id = 'many1'`;
	for (let turn = 0; turn < 4; turn++) await sendNotices(deps, "mail", never);
	const tried = await db.sql`select account_id from batch_notice where attempts > 0 and account_id <> 'flood'`;
	expect(tried).toHaveLength(1);
	const [own] = await db.sql`
		select count(*)::int as rows, count(*) filter (where attempts > 0)::int as tried, max(next_at) < now() + interval '10 minutes' as soon
		from batch_notice where account_id = 'flood'`;
	expect({ ...own }).toEqual({ rows: 1_000, tried: 16, soon: true });
});

test("a run that sends notices reads no more rows if 100 times as many wait", async () => {
	await db.sql`truncate batch_notice`;
	const readBy = async () => {
		let rows = 0;
		await rolledBack(db.sql, async (sql, statements) => {
			await sql.unsafe(SET_AUTO_PLANS);
			await sql`set local enable_seqscan = off`;
			const count = async () => {
				const [row] = await sql`
					select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as rows from pg_stat_xact_user_tables where relname = 'batch_notice'`;
				return Number(row?.rows ?? 0);
			};
			// PostgreSQL may report reads of earlier runs late, so the count before this run is subtracted.
			const before = await count();
			await sendNotices({ ...deps, statements }, "mail", never);
			rows = (await count()) - before;
		});
		return rows;
	};
	await crowd("model.retiring", 1, 400);
	const small = await readBy();
	await crowd("model.retiring", 401, 40_000);
	const large = await readBy();
	await db.sql`analyze batch_notice`;
	const counted = await readBy();
	const isMore = Math.max(large, counted) > small * 1.1 + 5;
	expect({ small, large, counted, isMore }).toEqual({ small, large, counted, isMore: false });
	expect(small).toBeLessThan(1_000);
	await db.sql`truncate batch_notice`;
});
