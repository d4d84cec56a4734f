/**
 * Writes years of books with statements over whole tables: the history of `accounts` customers after `days` days. Each
 * day has the same number of requests in each size, so that a larger size means a longer history and more customers,
 * not busier days.
 */
import type postgres from "postgres";
import type { Secret } from "../../../src/keys/secret.ts";
import { createDigest, newSecret } from "../../../src/keys/secret.ts";
import { KEY_PEPPER, SERVICE_NAME } from "../product.ts";

export interface Size {
	/** Number of settled requests, rounded to whole days, the last of which is today. */
	readonly usageRows: number;
	/** Requests per day: a multiple of ten and of the seconds between bursts. */
	readonly rowsPerDay: number;
	/** Number of accounts, each with two keys. The account and its first key have a lease of an ended epoch. */
	readonly accounts: number;
}

export interface Filled {
	readonly size: Size;
	readonly days: number;
	/** First keys of the newest accounts, newest account first. */
	readonly secrets: readonly Secret[];
}

/** Requests come in bursts of ten of one account, so hourly sums have a tenth of their rows. */
const BURST = 10;
const CHARGE_NANO_USD = 120_000;
const CREDIT_NANO_USD = 5_000 * 1e9;
const SECRETS_MAX = 20_000;
/** The first sealed day and the last two are checked row by row; yesterday and today are not sealed. */
const DAYS_MIN = 5;
/** The only instance of the history, whose epoch has ended. */
const INSTANCE = "gateway-1";

/** The account with every tenth burst, and an ordinary account. */
export const HEAVY_ACCOUNT = accountId(0);
export const LIGHT_ACCOUNT = accountId(3);

function accountId(number: number): string {
	return `acc_${number.toString(16).padStart(32, "0")}`;
}

export function keyId(account: number, key: 1 | 2): string {
	return `key_${key}${account.toString(16).padStart(31, "0")}`;
}

const ACCOUNT = (n: string) => `'acc_' || lpad(to_hex(${n}), 32, '0')`;
const KEY = (n: string, key: 1 | 2) => `'key_${key}' || lpad(to_hex(${n}), 31, '0')`;
const HASH = (text: string) => `encode(sha256((${text})::bytea), 'hex')`;

/** `sql` must have one connection, to a migrated, empty database. */
export async function fillHistory(sql: postgres.Sql, size: Size, say: (line: string) => void): Promise<Filled> {
	const days = Math.max(DAYS_MIN, Math.round(size.usageRows / size.rowsPerDay));
	await layOutDays(sql, days);
	const secrets = Array.from({ length: Math.min(SECRETS_MAX, size.accounts) }, () => newSecret(SERVICE_NAME));
	const step = async (name: string, text: string) => {
		const startedMs = performance.now();
		await sql.unsafe(text);
		say(`${name}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
	};
	await sql.unsafe("set synchronous_commit = off; set session_replication_role = replica; set work_mem = '256MB'");
	const again = await withoutIndexes(sql, ["usage_event", "usage_hour", "lease", "lease_op", "api_key", "budget"]);
	await step("accounts", accountsText(size));
	await putSecrets(sql, size, secrets);
	await step("usage", usageText(size, days));
	await step("sums by the hour", hoursText(size, days));
	await step("leases", leasesText(size, days));
	for (const text of again) await step(text.slice(0, 100), text);
	await step("vacuum", "vacuum (freeze, analyze)");
	await step("seals", sealsText(size, days));
	await sql.unsafe("analyze; checkpoint");
	return { size, days, secrets };
}

/**
 * Drops indexes and constraints that are faster to create on full tables. Returns the statements that recreate them.
 */
async function withoutIndexes(sql: postgres.Sql, tables: readonly string[]): Promise<string[]> {
	const rows = await sql<{ drop: string; make: string }[]>`
		select case when c.oid is null then format('drop index %s', i.indexrelid::regclass) else
				format('alter table %s drop constraint %I', i.indrelid::regclass, c.conname) end as drop,
			case when c.oid is null then pg_get_indexdef(i.indexrelid) else
				format('alter table %s add constraint %I %s', i.indrelid::regclass, c.conname, pg_get_constraintdef(c.oid)) end as make
		from pg_index i left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
		where i.indrelid = any (${tables}::regclass[]) order by 1`;
	for (const { drop } of rows) await sql.unsafe(drop);
	return rows.map(({ make }) => make);
}

function accountsText({ accounts }: Size): string {
	return `
		insert into account (id, email, name, signed_in_at, topped_up, created_at)
			select ${ACCOUNT("n")}, n || '@example.com', 'customer ' || n, now(), true, now() - interval '1 day' * (n % 90) from generate_series(0, ${accounts - 1}) n;
		insert into top_up (id, account_id, amount_nano_usd, method, reference, state, decided_at, decided_by, created_at)
			select 'top_' || n, ${ACCOUNT("n")}, ${CREDIT_NANO_USD}, 'transfer', 'bench-' || n, 'confirmed', ${OLDEST}, 'bench', ${OLDEST} from generate_series(0, ${accounts - 1}) n;
		insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note, created_at)
			select 'led_' || n, ${ACCOUNT("n")}, 'top_up', ${CREDIT_NANO_USD}, 'topup:top_' || n, 'bench', '', ${OLDEST} from generate_series(0, ${accounts - 1}) n;
		insert into api_key (id, account_id, name, digest, prefix, last_four, models)
			select case k when 1 then ${KEY("n", 1)} else ${KEY("n", 2)} end, ${ACCOUNT("n")}, 'key ' || k, ${HASH("k || ' ' || n")}, 'tg-', '0000', '[]'
			from generate_series(0, ${accounts - 1}) n, generate_series(1, 2) k;
		insert into budget (id, kind, account_id, limit_nano_usd)
			select ${ACCOUNT("n")}, 'account', ${ACCOUNT("n")}, ${CREDIT_NANO_USD} from generate_series(0, ${accounts - 1}) n;
		insert into budget (id, kind, account_id, limit_nano_usd)
			select case k when 1 then ${KEY("n", 1)} else ${KEY("n", 2)} end, 'key', ${ACCOUNT("n")}, null from generate_series(0, ${accounts - 1}) n, generate_series(1, 2) k;`;
}

/** Time of all top-ups, in the first minute of the first day. */
const OLDEST = "(select at from bench_day where day = 0)";

async function putSecrets(sql: postgres.Sql, { accounts }: Size, secrets: readonly Secret[]): Promise<void> {
	const digest = createDigest(KEY_PEPPER);
	const rows = secrets.map((secret, index) => ({ id: keyId(accounts - 1 - index, 1), digest: digest(secret) }));
	await sql`create temp table known as
		select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as x(id text, digest text)`;
	await sql`update api_key k set digest = x.digest from known x where x.id = k.id`;
	await sql`drop table known`;
}

/** The account of a burst: every tenth burst is the heavy account's, the others are scattered over all accounts. */
const BURST_ACCOUNT = ({ accounts }: Size) => `(case when b % 10 = 0 then 0 else 1 + (b * 7919) % ${accounts - 1} end)`;
const BURST_MODEL = "case when b % 5000 = 1 then 'rare-model' else 'model-' || (b % 6) end";
const BURST_ENDING =
	"case when b % 997 = 0 then 'upstream_failed' when b % 101 = 0 then 'client_left' else 'finished' end";

/** Truncating and filling the table in one transaction skips the write-ahead log (wal_level = minimal). */
function usageText(size: Size, days: number): string {
	return `
		begin;
		truncate usage_event;
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, cached_tokens, completion_tokens, replica,
			admitted_at, first_token_ms, duration_ms, settled_at)
		select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(b * ${BURST} + r), 15, '0'))::uuid,
			account, key, '${INSTANCE}', 1, model, 'rc_0190c0f0a5e87000800000000000000' || (b % 6), 'chat', b % 2 = 0,
			${CHARGE_NANO_USD * 4}, ${CHARGE_NANO_USD}, 'exact', ending, case ending when 'upstream_failed' then 502 else 200 end,
			100, 0, 10, model || '#0', at, 120 + r, 900 + r, at + interval '1 second'
		from (
			select b, ${ACCOUNT("n")} as account, ${KEY("n", 1)} as key, model, ending, started from (
				select b, ${BURST_ACCOUNT(size)} as n, ${BURST_MODEL} as model, ${BURST_ENDING} as ending,
					d.at + (b % ${size.rowsPerDay / BURST}) * interval '${(86_400 * BURST) / size.rowsPerDay} seconds' as started
				from bench_day d, lateral generate_series(d.day::bigint * ${size.rowsPerDay / BURST}, (d.day + 1)::bigint * ${size.rowsPerDay / BURST} - 1) b
				where d.day < ${days}
			) x where started < (select at from bench_until)
		) y, lateral (select r, started + r * interval '${86_400 / size.rowsPerDay} seconds' as at from generate_series(0, ${BURST - 1}) r) z;
		commit;`;
}

function hoursText(size: Size, days: number): string {
	return `
		begin;
		truncate usage_hour;
		insert into usage_hour (account_id, hour, key_id, model, class, requests, prompt_tokens, cached_tokens, completion_tokens,
			reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
		select ${ACCOUNT("n")}, hour, ${KEY("n", 1)}, model, usage_class(ending), count(*) * ${BURST}, count(*) * ${BURST * 100}, 0, count(*) * ${BURST * 10},
			0, count(*) * ${BURST * CHARGE_NANO_USD}, 0, count(*) * ${BURST * 905}, count(*) * ${BURST * 125}, count(*) * ${BURST}
		from bench_day d, lateral (
			select ${BURST_ACCOUNT(size)} as n, ${BURST_MODEL} as model, ${BURST_ENDING} as ending,
				date_trunc('hour', d.at + (b % ${size.rowsPerDay / BURST}) * interval '${(86_400 * BURST) / size.rowsPerDay} seconds', 'UTC') as hour,
				d.at + (b % ${size.rowsPerDay / BURST}) * interval '${(86_400 * BURST) / size.rowsPerDay} seconds' as started
			from generate_series(d.day::bigint * ${size.rowsPerDay / BURST}, (d.day + 1)::bigint * ${size.rowsPerDay / BURST} - 1) b
		) x where d.day < ${days} and started < (select at from bench_until)
		group by d.day, n, hour, model, ending order by d.day, hour, n;
		commit;
		insert into usage_total select account_id, sum(charged_nano_usd), max(hour) from usage_hour group by 1;
		insert into service_hour select usage_bucket(hour, 40), model, case class when 'ok' then 'finished' when 'left' then 'client_left' else 'upstream_failed' end,
			sum(requests), sum(prompt_tokens), 0, sum(completion_tokens), 0, sum(charged_nano_usd), 0, sum(duration_ms), sum(first_token_ms), sum(first_tokens), 0
			from usage_hour group by 1, 2, 3 order by 1;
		insert into model_speed select distinct usage_bucket(hour, 2), model, kind, bucket, 1 from usage_hour, (values ('first_token'), ('rate')) k(kind),
			generate_series(30, 50) bucket order by 1;
		insert into replica_hour select distinct usage_bucket(hour, 40), model, model || '#0', 3600, 3600, 28800, 2000000000, now() from usage_hour order by 1;
		insert into usage_cursor (id, horizon, folded_at) values (1, pg_current_xact_id()::text::bigint, now());
		update api_key set last_used_at = now() - interval '1 hour' where id like 'key_1%';`;
}

/** Each lease was granted a cent more than it spent. */
function leasesText({ accounts }: Size, days: number): string {
	return `
		insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until, started_at) select '${INSTANCE}', 1, 1, 'dead', 15000, now(), at from bench_day where day = 0;
		begin;
		truncate lease, lease_op;
		create temp table spent on commit drop as select account_id, sum(charged_nano_usd)::bigint as nano from usage_hour group by 1;
		insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd)
			select case k when 0 then ${ACCOUNT("n")} else ${KEY("n", 1)} end, '${INSTANCE}', 1, coalesce(s.nano, 0) + 10000000, coalesce(s.nano, 0)
			from generate_series(0, ${accounts - 1}) n left join spent s on s.account_id = ${ACCOUNT("n")}, generate_series(0, 1) k;
		insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd, at)
			select gen_random_uuid(), l.budget_id, l.instance_id, l.epoch, 'grant', l.granted_nano_usd,
				d.at + interval '1 hour' from lease l, bench_day d where d.day = abs(hashtext(l.budget_id)) % ${Math.max(1, days - 2)};
		update budget b set drawn_nano_usd = l.granted_nano_usd from lease l where l.budget_id = b.id;
		commit;`;
}

/**
 * Days before yesterday are sealed: the first and the last two with their rows, the others by numbers alone, because a
 * run does not read them. Yesterday is not sealed, so that the job has work.
 */
function sealsText({ rowsPerDay }: Size, days: number): string {
	return `
		do $$
		declare
			v_day record;
			d sealed_day;
			u record;
			e record;
			v_former bytea;
			v_from timestamptz;
			v_end timestamptz;
		begin
			for v_day in select * from bench_day where day < ${days - 2} order by day loop
				v_from := case v_day.day when 0 then '-infinity' else v_day.at end;
				v_end := v_day.at + interval '1 day';
				d := null; d.day := (v_day.at at time zone 'UTC')::date; d.sealed_at := v_end + interval '1 hour';
				if v_day.day < 1 or v_day.day >= ${days - 4} then
					select * into u from books_usage(v_from, '00000000-0000-0000-0000-000000000000', v_end, 2000000000, '');
					d.usage_rows := u.counted; d.charged_nano_usd := u.charged; d.usage_hash := u.hash;
				else
					d.usage_rows := ${rowsPerDay}; d.charged_nano_usd := ${rowsPerDay * CHARGE_NANO_USD}; d.usage_hash := sha256('');
				end if;
				select * into e from books_entries(v_from, v_end);
				d.entry_rows := e.counted; d.top_up_nano_usd := e.top_ups; d.refund_nano_usd := e.refunds; d.adjustment_nano_usd := e.adjustments;
				d.dispute_nano_usd := e.disputes; d.credit_note_nano_usd := e.credit_notes; d.entry_hash := e.hash; d.written_off_nano_usd := 0;
				select coalesce(sum(amount_nano_usd), 0) into d.granted_nano_usd from lease_op where at >= v_from and at < v_end;
				d.returned_nano_usd := 0;
				d.seal := books_seal_of(d, v_former);
				v_former := d.seal;
				insert into sealed_day select d.*;
			end loop;
			insert into sealed_lease (budget_id, instance_id, epoch, granted_nano_usd, returned_nano_usd, charged_nano_usd)
				select l.budget_id, l.instance_id, l.epoch, l.granted_nano_usd, 0, l.settled_nano_usd - coalesce(o.nano, 0)
				from lease l left join (
					select k.budget_id, sum(x.charged_nano_usd) as nano from usage_event x, unnest(array[x.account_id, x.key_id]) k(budget_id)
					where x.settled_at >= v_end group by 1
				) o using (budget_id);
			insert into sealed_budget (budget_id, entries_nano_usd) select account_id, sum(amount_nano_usd) from ledger_entry group by 1;
			insert into seal_cursor (id, day, entries_from, closed_until, usage_at, usage_id, usage_hash, op_at, op_id)
				values (1, (v_end at time zone 'UTC')::date, v_end, v_end, v_end, '00000000-0000-0000-0000-000000000000', '', v_end, '00000000-0000-0000-0000-000000000000');
		end $$;`;
}

/** Creates tables with the days of the history and its end, for the other statements. */
async function layOutDays(sql: postgres.Sql, days: number): Promise<void> {
	await sql.unsafe(`
		create table bench_until as select now() - interval '3 minutes' as at;
		create table bench_day as select d as day, (date_trunc('day', now(), 'UTC') - (${days - 1} - d) * interval '1 day') as at
		from generate_series(0, ${days - 1}) d`);
}
