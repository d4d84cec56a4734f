/**
 * An instance of the version before this one, spoken for by hand through its own SQL functions, beside a service of this
 * version: what can be shown of two versions on one database without the former one's program. With it: `versions/upgrade.test.ts`.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { newUuid } from "../../src/base/id.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { atEnd } from "../support/at-end.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { chatModel, withService } from "../support/service.ts";
import { reply, startUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { FORMER_COMMIT } from "../versions/former-version.ts";

const ROOT = join(import.meta.dir, "../..");
const SNAPSHOT = readFileSync(join(import.meta.dir, "former-functions.sql"), "utf8");
/** In the order in which the former version lays them down. */
const FILES = ["cluster", "ledger", "keys", "usage", "billing"];
const MODEL = "test-model";

const upstream = startUpstream({ dialect: "vllm" });
atEnd(() => upstream.stop());
upstream.always(() => reply().text("one two three"));
const service = await withService({ models: chatModel({ url: upstream.url, dialect: "vllm" }) });
/** As the former version connects: without a path of its own. */
const former = postgres(service.db.url.replace(/[?&]search_path=[^&]*/g, ""), { max: 4, onnotice: () => {} });
atEnd(() => former.end());

/** What its boot does on a database that has all of its migrations. */
const boot = () =>
	former.begin(async (transaction) => {
		await transaction`insert into control_clock (id, seq) values (1, 0) on conflict do nothing`;
		await transaction.unsafe(SNAPSHOT);
	});
const chat = (secret: string) =>
	service.post("/v1/chat/completions", secret, {
		model: MODEL,
		messages: [{ role: "user", content: "Hello" }],
		max_tokens: 8,
	});
const ours = () => former`
	select p.oid, p.xmin from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = ${FUNCTION_SET} order by 1`;
const json = (value: unknown) => JSON.stringify(value);

test("the snapshot is what the history has, where there is one", () => {
	const show = (file: string) =>
		Bun.spawnSync(["git", "show", `${FORMER_COMMIT}:src/db/functions/${file}.sql`], { cwd: ROOT });
	const shown = Bun.which("git") === null ? [] : FILES.map(show);
	if (shown.length === 0 || !shown.every(({ success }) => success))
		return console.log(`the history does not have ${FORMER_COMMIT}`);
	const text = shown.map(({ stdout }) => stdout.toString()).join("");
	expect(SNAPSHOT.endsWith(text)).toBe(true);
});

test("its boot touches nothing of this version, which serves on", async () => {
	const { secret } = await service.customer();
	expect((await chat(secret)).status).toBe(200);
	const before = await ours();
	await Promise.all([boot(), chat(secret), chat(secret)]);
	await boot();
	expect([...(await ours())]).toEqual([...before]);
	expect(before.length).toBeGreaterThan(10);
	expect((await chat(secret)).status).toBe(200);
});

test("both draw on one budget and settle, and neither has what the other holds", async () => {
	await boot();
	const { accountId, keyId, secret } = await service.customer();
	const epoch = await joins("former-1");
	const grant = (want: number) =>
		former`select op, amount, available, elsewhere from ledger_grant('former-1', ${epoch}, ${json([
			{ op: newUuid(), budget: accountId, want, min: 1, again: false },
			{ op: newUuid(), budget: keyId, want, min: 1, again: false },
		])}::text::json)`;
	const granted = await grant(1_000_000_000);
	expect(granted.map((row) => row.amount)).toEqual(["1000000000", "1000000000"]);
	expect((await chat(secret)).status).toBe(200);
	await service.settled();
	const [open] =
		await former`select sum(granted_nano_usd)::bigint as granted, count(*)::int as leases from lease where budget_id = ${accountId} and state = 'open'`;
	expect(open?.leases).toBe(2);
	const [budget] = await former`select drawn_nano_usd as drawn from budget where id = ${accountId}`;
	expect(budget?.drawn).toBe(open?.granted);
	const before = await service.balance(accountId);

	const settled = {
		id: newUuid(),
		account: accountId,
		key: keyId,
		model: MODEL,
		card: `${MODEL}@1`,
		endpoint: "chat",
		streamed: false,
		reserved: 400_000_000,
		charged: 300_000_000,
		off: 0,
		basis: "exact",
		ending: "finished",
		status: 200,
		prompt: 1,
		cached: 0,
		completion: 1,
		reasoning: 0,
		units: 0,
		replica: null,
		at: Date.now(),
		first: 1,
		ms: 2,
	};
	const running = { id: newUuid(), account: accountId, key: keyId, model: MODEL, reserved: 1_000, at: Date.now() };
	for (let time = 0; time < 2; time++) {
		const [row] =
			await former`select ledger_flush('former-1', ${epoch}, ${json([settled])}::text::json, ${json([running])}::text::json) as state`;
		expect(row?.state).toBe("ok");
	}
	const back = [accountId, keyId].map((budget) => ({ op: newUuid(), budget, amount: 600_000_000 }));
	for (let time = 0; time < 2; time++)
		await former`select ledger_return('former-1', ${epoch}, ${json(back)}::text::json)`;
	const [closed] = await former`select ledger_close('former-1', ${epoch}, true) as leases`;
	expect(closed?.leases).toBe(2);
	// 0.3 by the former one's request, nothing for the one that was running, and ours.
	expect((await service.balance(accountId)).spent - before.spent).toBe(300_000_000);
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});

test("a key that it revokes is refused here, and a revocation from here waits until it has heard", async () => {
	await boot();
	const [theirs, mine] = [await service.customer(), await service.customer()];
	for (const { secret } of [theirs, mine]) expect((await chat(secret)).status).toBe(200);
	await former`
		with k as (update api_key set state = 'revoked', revoked_at = clock_timestamp() where id = ${theirs.keyId} returning id, key_fields(api_key) as fields)
		select control_append('key', k.id, k.fields) from k`;
	await waitFor(async () => (await chat(theirs.secret)).status === 401, "the former version's revocation to be heard");

	const epoch = await joins("former-2");
	const [entry] = await service.db.sql`
		with k as (update api_key set state = 'revoked', revoked_at = clock_timestamp() where id = ${mine.keyId} returning id, key_fields(api_key) as fields)
		select control_append('key', k.id, k.fields) as seq from k`;
	const seq = Number(entry?.seq);
	const pending = async () => {
		const rows = await former<{ id: string }[]>`select id from instance where state = 'live' and applied_seq < ${seq}`;
		return rows.map(({ id }) => id);
	};
	await waitFor(
		async () => (await pending()).join() === "former-2",
		"this version to have applied it, and the former one not",
	);
	// It reads the log as it always did, and says so.
	expect(await former`select kind, subject from control_log where seq = ${seq}`).toEqual([
		{ kind: "key", subject: mine.keyId },
	] as never);
	const [beat] = await former`select instance_heartbeat('former-2', ${epoch}, ${seq}, 30000) as seq`;
	expect(Number(beat?.seq)).toBeGreaterThanOrEqual(seq);
	expect(await pending()).toEqual([]);
	await former`select ledger_close('former-2', ${epoch}, false)`;
});

test("what lies idle here goes to the former version that asks for it", async () => {
	await boot();
	const { accountId, keyId, secret } = await service.customer();
	expect((await chat(secret)).status).toBe(200);
	const epoch = await joins("former-3");
	const idle = async () => {
		const [row] = await former`
			select coalesce(sum(granted_nano_usd - returned_nano_usd - settled_nano_usd), 0) as nano from lease where budget_id in (${accountId}, ${keyId})`;
		return Number(row?.nano);
	};
	expect(await idle()).toBeGreaterThan(0);
	for (const budget of [accountId, keyId])
		await former`select control_append('recall', ${budget}, ${json({ instance: "former-3", epoch })}::text::jsonb)`;
	await waitFor(async () => (await idle()) === 0, "idle credit to be given back");
	await former`select ledger_close('former-3', ${epoch}, false)`;
});

test("a refusal here waits for what the former version holds: until it has answered nothing is proved", async () => {
	await boot();
	const credit = 1_000_000_000;
	const { accountId, secret } = await service.customer({ exactCredit: credit });
	const epoch = await joins("former-4");
	const held = { op: newUuid(), budget: accountId, want: credit, min: credit, again: false };
	await former`select op from ledger_grant('former-4', ${epoch}, ${json([held])}::text::json)`;
	expect((await chat(secret)).status).toBe(503);

	/** Reads the log as the former version does: gives back what it is asked for, then says that it has applied the entry. */
	const hears = async (givesBack: boolean) => {
		let [{ heard } = { heard: 0 }] = await former<{ heard: number }[]>`
			select coalesce(max(seq), 0)::int as heard from control_log where kind = 'recall' and subject = ${accountId}`;
		let status = 0;
		let questions = 0;
		const answer = chat(secret).then((response) => (status = response.status));
		await waitFor(async () => {
			const [asked] = await former<{ seq: number }[]>`
				select coalesce(max(seq), 0)::int as seq from control_log where kind = 'recall' and subject = ${accountId}`;
			if (asked && asked.seq > heard) {
				const back = [{ op: newUuid(), budget: accountId, amount: credit }];
				if (givesBack && questions === 0)
					await former`select ledger_return('former-4', ${epoch}, ${json(back)}::text::json)`;
				await former`select instance_heartbeat('former-4', ${epoch}, ${asked.seq}, 30000)`;
				heard = asked.seq;
				questions += 1;
			}
			return status !== 0;
		}, "the former version to be asked and the request to be answered");
		await answer;
		return { status, questions };
	};
	// It is asked twice: what moves between two answers would be seen in neither.
	const refused = await hears(false);
	expect(refused.status).toBe(402);
	expect(refused.questions).toBeGreaterThanOrEqual(2);
	expect(await hears(true)).toMatchObject({ status: 200 });
	await service.settled();
	await former`select ledger_close('former-4', ${epoch}, false)`;
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});

test("it closes its epoch while it says that it leaves, or renews itself: neither is aborted for the other", async () => {
	await boot();
	for (const [index, word] of [
		former`update instance set state = 'dead' where id = 'former-5' and state in ('joining', 'live')`,
		former`select instance_heartbeat('former-6', 1, 0, 30000)`,
	].entries()) {
		const id = `former-${5 + index}`;
		const epoch = await joins(id);
		await former.begin(async (closing) => {
			// As `ledger_close` begins.
			await closing`select 1 from instance i where i.id = ${id} and i.epoch = ${epoch} and i.state <> 'left' for update`;
			const said = word.execute();
			await waitFor(async () => (await lockWaits(service.db.sql)) === 1, "the other to wait for the row");
			await closing`select ledger_close(${id}, ${epoch}, false)`;
			return { said };
		});
		await word;
		const [standing] = await former`select state from instance where id = ${id} and epoch = ${epoch}`;
		expect(standing?.state).toBe("left");
	}
});

/** Joins and goes live as the former version does; gives its epoch. */
async function joins(id: string): Promise<number> {
	const [joined] = await former`select instance_join(${id}, 30000) as epoch`;
	const [clock] = await former`select seq from control_clock where id = 1`;
	const [live] = await former`select instance_go_live(${id}, ${joined?.epoch}, ${clock?.seq}, 30000) as seq`;
	expect(live?.seq).toBe(clock?.seq);
	return Number(joined?.epoch);
}
