import { beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { systemClock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/id.ts";
import { createBatchBooks } from "../../src/batch/batch-books.ts";
import type { BatchEnding } from "../../src/batch/batch-record.ts";
import type { Mail } from "../../src/console/mail/mailer.ts";
import { type NoticeDeps, sendNotices } from "../../src/console/notices/notices.ts";
import { type WebhookAnswer, type WebhookMessage, webhookSecret } from "../../src/console/notices/webhook.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { mailTexts } from "./mailbox.ts";

/** The end of a batch is reported at least once; twice only if a failure prevents recording the first delivery. */

const db = await withDatabase();
const books = createBatchBooks({ statements: db.statements });
const SECRET = "the console's own secret";
const never = new AbortController().signal;

const mails: ReturnType<typeof mailTexts>[] = [];
const calls: WebhookMessage[] = [];
const noted: string[] = [];
let onMail: (mail: Mail) => Promise<boolean>;
let onCall: (message: WebhookMessage) => Promise<WebhookAnswer>;
const deps: NoticeDeps = {
	statements: db.statements,
	clock: systemClock,
	mailer: {
		deliver: (mail) => {
			mails.push(mailTexts(mail));
			return onMail(mail);
		},
	},
	sendWebhook: (message) => {
		calls.push(message);
		return onCall(message);
	},
	figures: { notice: (channel, outcome) => void noted.push(`${channel} ${outcome}`) },
	webhookSecretOf: (salt) => webhookSecret(SECRET, salt),
	origin: () => "https://service.example",
	serviceName: "service",
};

beforeEach(async () => {
	mails.length = 0;
	calls.length = 0;
	noted.length = 0;
	onMail = async () => true;
	onCall = async () => ({ status: 200 });
	await db.sql`truncate batch, batch_end, batch_notice, batch_notice_setting`;
});

async function newAccount(setting: { mail?: "maker" | "owners"; url?: string } | null, owners = 1) {
	const id = newId("acc");
	await db.sql`insert into account (id, email, name) values (${id}, ${`${id}@account.example`}, 'An account')`;
	const people: string[] = [];
	const join = async (role: string) => {
		const user = newId("usr");
		await db.sql`insert into console_user (id, name, email, email_verified) values (${user}, 'P', ${`${user}@example.com`}, true)`;
		await db.sql`insert into member (user_id, account_id, role) values (${user}, ${id}, ${role})`;
		return user;
	};
	for (let n = 0; n < owners; n++) people.push(await join("owner"));
	if (setting !== null)
		await db.sql`insert into batch_notice_setting values (${id}, ${setting.mail ?? null}, ${setting.url ?? null}, ${setting.url ? "salt" : null})`;
	return { id, owners: people, join };
}

const begin = (accountId: string, keyId: string) =>
	books.create(
		{
			id: newId("batch"),
			accountId,
			keyId,
			endpoint: "/v1/chat/completions",
			inputFileId: "file_in",
			completionWindow: "24h",
			metadata: { note: "a secret prompt" },
			outputExpiresS: null,
			idempotencyKey: null,
			windowMs: 86_400_000,
		},
		50,
	);
async function ended(accountId: string, ending: BatchEnding = "completed", keyId = "key_none"): Promise<string> {
	const id = (await begin(accountId, keyId))?.id ?? "";
	const run = (await books.take(id))?.batch.run ?? 0;
	expect(await books.end(id, run, { ending, output: "file_out", error: null })).toBe(true);
	await books.end(id, run, { ending, output: "file_out", error: null });
	return id;
}
const tell = async () => {
	await sendNotices(deps, "webhook", never);
	await sendNotices(deps, "mail", never);
};
const rows = () =>
	db.sql`select state, attempts, answer, problem, next_at > now() + interval '1 minute' as later from batch_notice`;
/** Builds the mail client's error for a server that refuses a command. */
const refusedAt = (command: string, responseCode: number) =>
	Object.assign(new Error("refused"), { command, responseCode });
const wait = () => db.sql`update batch_notice set next_at = now()`;

test("the console sends no notice of a batch unless the account enables it", async () => {
	await ended((await newAccount(null)).id);
	await ended((await newAccount({})).id);
	await tell();
	expect([mails, calls, await rows(), await db.sql`select * from batch_end`]).toEqual([[], [], [], []] as never);
});

test("the console notifies of a batch's end in OpenAI's format, without customer text", async () => {
	const { id } = await newAccount({ url: "https://hook.example/" });
	const ids = new Map<string, string>();
	for (const ending of ["completed", "failed", "expired", "cancelled"] as const)
		ids.set(ending, await ended(id, ending));
	await tell();
	expect(calls).toHaveLength(4);
	const client = new OpenAI({ apiKey: "none", webhookSecret: webhookSecret(SECRET, "salt") });
	for (const { body } of calls) {
		const event = JSON.parse(body);
		const ending = event.type.replace("batch.", "");
		expect(event).toMatchObject({ object: "event", data: { id: ids.get(ending), status: ending, cost_usd: "0.00" } });
		expect(event.id).toBe(ids.get(ending)?.replace("batch_", "evt_"));
		expect(body).not.toContain("secret prompt");
	}
	expect(calls.map(({ secret }) => secret)).toEqual(Array(4).fill(client.webhookSecret));
	await wait();
	// A runner may report the end of a batch again long after its notice was sent.
	await books.end(ids.get("failed") ?? "", 1, { ending: "failed", output: null, error: null });
	await tell();
	expect(calls).toHaveLength(4);
	expect((await rows()).map(({ state, answer }) => [state, answer])).toEqual(Array(4).fill(["sent", 200]));
});

test("a batch's mail goes to its key's creator if a member, else to roles that pay", async () => {
	const maker = await newAccount({ mail: "maker" }, 2);
	const carl = await maker.join("developer");
	await db.sql`insert into audit_event (id, actor, action, subject, account_id, detail) values
		(${newId("aud")}, ${carl}, 'key.create', 'key_carls', ${maker.id}, '{}'),
		(${newId("aud")}, ${carl}, 'key.rotate', 'key_carls', ${maker.id}, '{"replacement":"key_new"}')`;
	const hearing = async (accountId: string, keyId: string) => {
		mails.length = 0;
		await ended(accountId, "completed", keyId);
		await tell();
		return mails.map(({ to }) => to.split("@")[0] ?? "").sort();
	};
	expect(await hearing(maker.id, "key_carls")).toEqual([carl]);
	expect(await hearing(maker.id, "key_new")).toEqual([carl]);
	expect(await hearing(maker.id, "key_of_others")).toEqual([...maker.owners].sort());
	await ended(maker.id, "completed", "key_carls");
	await db.sql`delete from member where user_id = ${carl}`;
	expect(await hearing(maker.id, "key_carls")).toEqual([...maker.owners, ...maker.owners].sort());
	const owners = await newAccount({ mail: "owners" }, 2);
	for (const role of ["developer", "viewer"] as const) await owners.join(role);
	const others = [await owners.join("admin"), await owners.join("billing")];
	expect(await hearing(owners.id, "key_none")).toEqual([...owners.owners, ...others].sort());
	expect(mails[0]?.text).toContain("is completed");
	expect(mails[0]?.text).not.toContain("secret prompt");
});

test("the console mails no former member about a batch", async () => {
	const { id, owners } = await newAccount({ mail: "owners" }, 2);
	onMail = () => Promise.reject(new Error("away"));
	await ended(id);
	await tell();
	await db.sql`delete from member where user_id = ${owners[0] ?? ""}`;
	onMail = async () => true;
	mails.length = 0;
	await wait();
	await tell();
	expect(mails.map(({ to }) => to)).toEqual([`${owners[1]}@example.com`]);
	expect((await rows()).map(({ state, problem }) => `${state} ${problem}`).sort()).toEqual([
		"failed no_member",
		"sent null",
	]);
});

test("concurrent consoles send each notice of a batch once", async () => {
	const { id } = await newAccount({ mail: "owners", url: "https://hook.example/" });
	for (let n = 0; n < 4; n++) await ended(id);
	await Promise.all(Array.from({ length: 8 }, () => tell()));
	await tell();
	expect([new Set(calls.map((call) => call.id)).size, calls.length]).toEqual([4, 4]);
	expect([new Set(mails.map((mail) => mail.id)).size, mails.length]).toEqual([4, 4]);
});

test("the console repeats the notice of a console that died, under the same id", async () => {
	await ended((await newAccount({ mail: "owners", url: "https://hook.example/" })).id);
	onCall = onMail = () => new Promise<never>(() => {});
	// The manual clock does not advance, so the deadlines of this console never fire: it hangs as if it had died.
	const dying = { ...deps, clock: createManualClock() };
	// The calls run one after the other, because of two concurrent claims one gets nothing.
	void sendNotices(dying, "webhook", never);
	await waitFor(() => calls.length === 1, "the webhook to be under way");
	void sendNotices(dying, "mail", never);
	await waitFor(() => mails.length === 1, "the mail to be under way");
	onCall = async () => ({ status: 204 });
	onMail = async () => true;
	await tell();
	expect([calls.length, mails.length]).toEqual([1, 1]);
	expect((await rows()).map(({ later }) => later)).toEqual([true, true]);
	await wait();
	await tell();
	expect([calls.length, mails.length]).toEqual([2, 2]);
	expect([calls[0]?.id, mails[0]?.id]).toEqual([calls[1]?.id, mails[1]?.id]);
	expect([calls[0]?.body, mails[0]?.text]).toEqual([calls[1]?.body, mails[1]?.text]);
	expect((await rows()).map(({ state }) => state)).toEqual(["sent", "sent"]);
});

test("the console retries a notice at growing intervals and gives up after 3 days", async () => {
	const { id } = await newAccount({ mail: "owners", url: "https://hook.example/" });
	await ended(id);
	onCall = async () => ({ status: 503 });
	onMail = async () => false;
	const waits: number[] = [];
	for (let n = 0; n < 7; n++) {
		await tell();
		const [row] =
			await db.sql`select extract(epoch from next_at - now())::int as s from batch_notice where channel = 'webhook'`;
		waits.push(Math.round(row?.s / 60));
		expect((await rows()).map(({ state, answer, problem }) => `${state} ${answer} ${problem}`).sort()).toEqual([
			"waiting 503 null",
			"waiting null mail_limit",
		]);
		await wait();
	}
	expect(waits).toEqual([2, 10, 30, 120, 300, 600, 600]);
	await db.sql`update batch_notice set created_at = now() - interval '73 hours'`;
	expect(noted).not.toContain("webhook failed");
	await tell();
	await wait();
	await tell();
	expect([calls.length, mails.length]).toEqual([8, 8]);
	expect((await rows()).map(({ state }) => state)).toEqual(["failed", "failed"]);
	expect(noted.slice(-2)).toEqual(["webhook failed", "mail failed"]);

	calls.length = 0;
	onCall = async () => ({ status: 410 });
	onMail = () => Promise.reject(refusedAt("RCPT TO", 550));
	await ended(id);
	await tell();
	await wait();
	await tell();
	expect([calls.length, mails.length]).toEqual([1, 9]);
	await db.sql`truncate batch_notice`;
	onCall = async () => ({ problem: "timeout" });
	onMail = async () => false;
	await ended(id);
	await tell();
	await ended(id);
	await db.sql`update batch_notice_setting set mail = null, webhook_url = null`;
	await wait();
	await tell();
	expect([calls.length, mails.length]).toEqual([2, 10]);
	expect((await rows()).map(({ state, problem }) => `${state} ${problem}`).sort()).toEqual([
		"failed no_member",
		"failed switched_off",
	]);
});

test("the console retries a notice if the mail server refuses its login or sender", async () => {
	await ended((await newAccount({ mail: "owners" })).id);
	for (const [command, responseCode] of [
		["CONN", 554],
		["EHLO", 502],
		["STARTTLS", 502],
		["AUTH PLAIN", 535],
		["MAIL FROM", 550],
	] as const) {
		onMail = () => Promise.reject(refusedAt(command, responseCode));
		await wait();
		await tell();
		expect((await rows()).map(({ state, problem }) => [command, state, problem])).toEqual([
			[command, "waiting", "mail_not_sent"],
		]);
	}
	onMail = async () => true;
	await wait();
	await tell();
	expect((await rows()).map(({ state }) => state)).toEqual(["sent"]);
});

test("a webhook receiver that never answers does not delay other accounts' notices", async () => {
	const dead = await newAccount({ url: "https://dead.example/" });
	const well = await newAccount({ url: "https://well.example/" });
	for (let n = 0; n < 30; n++) await ended(dead.id);
	const last = await ended(well.id);
	onCall = async ({ url }) => (url.includes("dead") ? { problem: "timeout" } : { status: 200 });
	await tell();
	expect(calls.filter(({ url }) => url.includes("dead"))).toHaveLength(4);
	expect(calls.find(({ url }) => url.includes("well"))?.id).toBe(last.replace("batch_", "evt_"));
	await tell();
	expect(calls).toHaveLength(5);
	onCall = async () => ({ status: 200 });
	for (let n = 0; n < 8; n++) {
		await wait();
		await tell();
	}
	expect(new Set(calls.map((call) => call.id)).size).toBe(31);
	expect((await rows()).filter(({ state }) => state !== "sent")).toEqual([] as never);
});

test("the console's stop waits for all notices in progress", async () => {
	const [away, slow] = [
		await newAccount({ url: "https://away.example/" }),
		await newAccount({ url: "https://slow.example/" }),
	];
	const lost = await ended(away.id);
	await ended(slow.id);
	const held = Promise.withResolvers<WebhookAnswer>();
	onCall = ({ url }) => (url.includes("slow") ? held.promise : Promise.resolve({ status: 200 }));
	const refused = Promise.withResolvers<void>();
	const failing = ((strings: TemplateStringsArray, ...values: never[]) => {
		if (!strings.join("").includes("update batch_notice set answer") || !values.includes(lost as never))
			return db.statements(strings, ...values);
		refused.resolve();
		return Promise.reject(new Error("the database is away"));
	}) as typeof db.statements;
	let isOver = false;
	const turn = sendNotices({ ...deps, statements: failing }, "webhook", never).finally(() => {
		isOver = true;
	});
	const told = turn.then(
		() => "",
		(error: Error) => error.message,
	);
	await refused.promise;
	await db.sql`select 1`;
	expect(isOver).toBe(false);
	held.resolve({ status: 200 });
	expect(await told).toBe("the database is away");
	expect((await rows()).map(({ state }) => state).sort()).toEqual(["sent", "waiting"]);
});
