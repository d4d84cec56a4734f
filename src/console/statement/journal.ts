import { assert } from "../../base/assert.ts";
import { csvLine } from "../../base/csv.ts";
import type { Statements } from "../../db/statements.ts";
import { ConsoleError } from "../console-error.ts";
import { closeMonths, parseMonth } from "./statement.ts";
import { exactUsd } from "./statement-lines.ts";

/** The journal's ledger accounts; `src/billing/README.md` explains each. */
const ACCOUNTS = {
	"1000": "Bank",
	"1100": "Card payments",
	"1900": "Demonstration",
	"2000": "Deferred revenue",
	"2100": "Promotional credit",
	"4000": "Revenue",
	"4100": "Revenue paid by promotional credit",
	"4200": "Credit notes",
	"6000": "Card fees",
	"6100": "Promotional expense",
	"6200": "Adjustments",
} as const;
type Account = keyof typeof ACCOUNTS;

export type Journal = Awaited<ReturnType<typeof readJournal>>;

/** Ledger accounts of each kind of movement. A negative amount is booked in reverse, from `credit` to `debit`. */
const MOVEMENTS: Readonly<Record<string, readonly [debit: Account, credit: Account, about: string]>> = {
	"top_up transfer": ["1000", "2000", "Top-ups by bank transfer"],
	"top_up card": ["1100", "2000", "Top-ups by card"],
	"top_up demo": ["1900", "2000", "Demonstration credit"],
	refund: ["1100", "2000", "Refunds"],
	dispute: ["1100", "2000", "Disputes of card payments"],
	adjustment: ["6200", "2000", "Adjustments"],
	credit_note: ["4200", "2000", "Credit notes"],
	promotion: ["6100", "2100", "Promotional credit given"],
	"promotion back": ["6100", "2100", "Promotional credit taken back"],
	usage: ["2000", "4000", "Usage"],
	late: ["2000", "4000", "Usage of earlier months, recorded in this one"],
	later: ["2000", "4000", "Usage of this month, recorded later"],
	promoted: ["2100", "2000", "Usage paid by promotional credit"],
	"promoted revenue": ["4100", "6100", "Usage paid by promotional credit, deducted from revenue"],
	fee: ["6000", "1100", "Fees of card payments, as Stripe reports them"],
};
const ACCOUNTS_AT_ONCE = 1_000;

interface Sums {
	month: string;
	movements: { kind: string; model: string | null; nano: string }[];
	closing: string;
	deferred: string;
	promotional: string;
}

/**
 * Writes the journal of each month whose days are all sealed, once, oldest first. First closes the statements of all
 * accounts, which the journal sums. Without a month to close this costs one statement.
 */
export async function closeJournals(statements: Statements): Promise<void> {
	for (;;) {
		const [due] = await statements<{ month: string }>`
			select d.month::date::text as month from (
				select coalesce((select max(j.month) + interval '1 month' from journal_month j),
					date_trunc('month', (select min(e.created_at) from ledger_entry e) at time zone 'UTC')) as month
			) d, seal_cursor s where s.id = 1 and d.month + interval '1 month' <= s.day`;
		if (due === undefined) return;
		for (let after = "", more = true; more; ) {
			const ids = await statements<{ id: string }>`
				select a.id from account a where a.id > ${after} order by a.id limit ${ACCOUNTS_AT_ONCE}`;
			await closeMonths(
				statements,
				ids.map(({ id }) => id),
			);
			more = ids.length === ACCOUNTS_AT_ONCE;
			after = ids.at(-1)?.id ?? after;
		}
		await writeJournal(statements, due.month);
	}
}

async function writeJournal(statements: Statements, first: string): Promise<void> {
	const [sums] = await statements<Sums>`
		with b as (
			select ${first}::timestamp at time zone 'UTC' as since, (${first}::timestamp + interval '1 month') at time zone 'UTC' as until
		), closed as materialized (
			select c.account_id, c.usage_nano_usd as usage, c.usage_to_date_nano_usd as to_date, c.closing_nano_usd as closing,
				coalesce(f.usage_to_date_nano_usd, c.usage_to_date_nano_usd - c.usage_nano_usd) as former
			from closed_month c left join closed_month f on f.account_id = c.account_id and f.month = (${first}::date - interval '1 month')::date
			where c.month = ${first}::date
		), used as materialized (
			select sum(promotion_used(c.account_id, c.to_date) - promotion_used(c.account_id, c.former)) as nano
			from closed c where exists (select 1 from promotion p where p.account_id = c.account_id)
		), models as materialized (
			select h.model, sum(h.charged_nano_usd) as nano from b, usage_hour h where h.hour >= b.since and h.hour < b.until group by 1
		), movements as (
			select case when e.kind = 'top_up' then 'top_up ' || t.method when e.kind = 'promotion' and e.amount_nano_usd < 0 then 'promotion back'
				when e.source_ref like 'batch-lost:%' then 'credit_note' else e.kind end as kind, null as model, sum(e.amount_nano_usd) as nano
			from b, ledger_entry e left join top_up t on t.id = substr(e.source_ref, 7) and e.kind = 'top_up'
			where e.created_at >= b.since and e.created_at < b.until group by 1
			union all select 'usage', m.model, m.nano from models m
			union all select 'later', null, (select sum(c.usage) from closed c) - (select sum(m.nano) from models m)
			union all select 'late', null, sum(c.to_date - c.usage - c.former) from closed c
			union all select k.kind, null, u.nano from used u, (values ('promoted'), ('promoted revenue')) k(kind)
			union all select 'fee', null, sum(p.fee_cents) * 10000000 from b, stripe_payment p where p.fee_at >= b.since and p.fee_at < b.until
		)
		select to_char(${first}::date, 'YYYY-MM') as month, (select coalesce(sum(c.closing), 0) from closed c) as closing,
			coalesce(j.deferred_nano_usd, 0) as deferred, coalesce(j.promotional_nano_usd, 0) as promotional,
			(select coalesce(json_agg(json_build_object('kind', m.kind, 'model', m.model, 'nano', m.nano::text) order by m.kind, m.nano desc), '[]')
				from movements m where m.nano <> 0) as movements
		from (select 1) one left join journal_month j on j.month = (${first}::date - interval '1 month')::date`;
	assert(sums !== undefined, "sums have a row");
	const entries = Object.keys(MOVEMENTS).flatMap((kind) =>
		sums.movements.filter((one) => one.kind === kind).map(({ model, nano }) => entryOf(kind, model, BigInt(nano))),
	);
	const change = (account: Account) =>
		entries.reduce((sum, { debit, credit, nanoUsd }) => {
			const sign = credit === account ? 1n : debit === account ? -1n : 0n;
			return sum + sign * BigInt(nanoUsd);
		}, 0n);
	const deferred = BigInt(sums.deferred) + change("2000");
	const promotional = BigInt(sums.promotional) + change("2100");
	assert(entries.length === sums.movements.length, `the journal of ${first} lacks a kind of movement`);
	assert(deferred + promotional === BigInt(sums.closing), `the journal of ${first} differs from the statements`);
	await statements`
		insert into journal_month (month, deferred_nano_usd, promotional_nano_usd, entries)
		values (${first}::date, ${String(deferred)}::bigint, ${String(promotional)}::bigint, ${JSON.stringify(entries)}::text::jsonb)
		on conflict do nothing`;
}

/** The amount is positive, as a decimal text, since it may exceed NanoUsd's range. */
function entryOf(kind: string, model: string | null, nano: bigint) {
	const movement = MOVEMENTS[kind];
	assert(movement !== undefined, `the journal has accounts for ${kind}`);
	const [debit, credit, about] = movement;
	if (nano > 0n) return { about, debit, credit, model, nanoUsd: String(nano) };
	return { about, debit: credit, credit: debit, model, nanoUsd: String(-nano) };
}

interface Row {
	month: string;
	deferred: string;
	promotional: string;
	closed_at: Date;
	entries: ReturnType<typeof entryOf>[];
}

/** Returns the journal of a closed month. Faults `invalid_request`; `not_found` for a month that is not closed. */
export async function readJournal(statements: Statements, month: string) {
	const [journal] = await listJournals(statements, parseMonth(month));
	if (journal !== undefined) return journal;
	throw new ConsoleError("not_found", "There is no journal of this month. Months close within hours of their end.", {
		param: "month",
	});
}

/** Returns journals without their entries, newest first; with `first`, the first day of a month, only that month's. */
export async function listJournals(statements: Statements, first: string | null = null) {
	const rows = await statements<Row>`
		select to_char(j.month, 'YYYY-MM') as month, j.deferred_nano_usd as deferred, j.promotional_nano_usd as promotional,
			j.closed_at, case when ${first}::date is null then '[]'::jsonb else j.entries end as entries
		from journal_month j where ${first}::date is null or j.month = ${first}::date order by j.month desc`;
	return rows.map(({ closed_at, deferred, promotional, ...row }) => ({
		...row,
		// Liabilities at the month's end: unspent paid credit, and unspent promotional credit.
		...{ deferredNanoUsd: BigInt(deferred), promotionalNanoUsd: BigInt(promotional) },
		closedAtMs: closed_at.getTime(),
	}));
}

/** Returns two lines for each entry: its debit and its credit. */
export function journalLines({ entries }: Journal) {
	return entries.flatMap(({ about, debit, credit, model, nanoUsd }, index) => {
		const usd = exactUsd(BigInt(nanoUsd));
		return ([debit, credit] as const).map((account) => ({
			...{ entry: index + 1, account, account_name: ACCOUNTS[account], model },
			debit_usd: account === debit ? usd : null,
			credit_usd: account === credit ? usd : null,
			description: about,
		}));
	});
}

/** CSV in English with a decimal point, since programs read it. */
export function journalCsv(journal: Journal): string {
	const head = ["month", "entry", "account", "account_name", "model", "debit_usd", "credit_usd", "description"];
	const rows = journalLines(journal).map((line) => [journal.month, ...Object.values(line)]);
	return [head, ...rows].map(csvLine).join("");
}
