import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutation } from "./mutations.ts";

/** A fault of an SQL function that the tests must notice: a rule and one changed text of its file. */
export interface SqlMutant {
	/** The rule as it is broken; names the mutant. */
	readonly breaks: string;
	/** Occurs once in the file. */
	readonly before: string;
	readonly after: string;
	/** A seed of `bun run sim -- --sql` that finds it, or one of the next. */
	readonly sqlSeed?: number;
	/** That seed needs the world with projects. */
	readonly sqlProjects?: true;
}

/** By file below `src/db/functions/`. */
export const SQL_MUTANTS: Readonly<Record<string, readonly SqlMutant[]>> = {
	"cluster.sql": [
		{
			breaks: "fencing off does not look whether the lease was renewed",
			before: "b.state <> all (p_from) or b.beat <> p_beat then",
			after: "b.state <> all (p_from) then",
		},
		{
			breaks: "fencing off does not wait for a renewal that is being committed",
			before: "  perform pg_advisory_xact_lock(hashtextextended('standing ' || p_id || ' ' || p_epoch, 0));\n",
			after: "",
		},
		{ breaks: "any standing may follow any other", before: "b.state <> all (p_from) or ", after: "" },
		{
			breaks: "an instance goes live without holding the control log",
			before: "  perform pg_advisory_xact_lock_shared(hashtextextended('control log', 0));\n",
			after: "",
		},
		{
			breaks: "an instance that was fenced off renews its lease",
			before:
				"if instance_stand(p_id, p_epoch, null, array['live', 'silent'], 'live', p_ttl_ms, p_applied) is null then\n    return;",
			after:
				"if instance_stand(p_id, p_epoch, null, array['live', 'silent', 'dead'], 'live', p_ttl_ms, p_applied) is null then\n    return;",
		},
		{
			breaks: "an instance that was fenced off goes live",
			before: "array['joining', 'live', 'silent'], 'live', p_ttl_ms",
			after: "array['joining', 'live', 'silent', 'dead'], 'live', p_ttl_ms",
		},
		{
			breaks: "what an instance has applied is not written down",
			before: "greatest(b.applied_seq, p_applied)",
			after: "b.applied_seq",
			sqlSeed: 5,
		},
		{
			breaks: "entries get their numbers without the log's lock",
			before: "  perform pg_advisory_xact_lock(hashtextextended('control log', 0));\n",
			after: "",
		},
		{
			breaks: "two starts of one identity take their epochs without a lock",
			before: "  perform pg_advisory_xact_lock(hashtextextended('instance ' || p_id, 0));\n",
			after: "",
		},
		{
			breaks: "an instance that has applied all but the entry counts as up to date",
			before:
				"return query select i.id, i.epoch, i.beat, i.ttl_ms, i.lease_until from instance_now i\n    where i.state in ('live', 'silent') and i.applied_seq < p_seq;",
			after:
				"return query select i.id, i.epoch, i.beat, i.ttl_ms, i.lease_until from instance_now i\n    where i.state in ('live', 'silent') and i.applied_seq < p_seq - 1;",
			sqlSeed: 8,
		},
	],
	"lease.sql": [
		{
			breaks: "an epoch that was fenced off is granted credit",
			before: "and i.state in ('live', 'silent')) then\n    raise",
			after: "and i.state in ('live', 'silent', 'dead')) then\n    raise",
		},
		{
			breaks: "grants of one budget do not exclude each other",
			before: "into b\n      from budget g where g.id = r.budget for no key update skip locked;",
			after: "into b\n      from budget g where g.id = r.budget;",
		},
		{
			breaks: "more is granted than is available",
			before: "if v_amount > b.cap - b.drawn or v_amount < r.min then",
			after: "if v_amount < r.min then",
			sqlSeed: 5,
		},
		{
			breaks: "a lifetime's cap gives way beside an instance that does not know of the period's",
			before: "where i.state = 'live' and i.applied_seq < b.lift_seq) then",
			after: "where false) then",
		},
		{
			breaks: "a grant that is repeated is granted again",
			before: "select o.amount_nano_usd into v_amount from lease_op o where o.id = r.op;",
			after: "select o.amount_nano_usd into v_amount from lease_op o where o.id = gen_random_uuid();",
		},
		{
			breaks: "a refusal counts as proved while an epoch is being closed",
			before: "(i.state in ('live', 'closing') or exists",
			after: "(i.state in ('live') or exists",
		},
		{
			breaks: "a refusal is proved though all together would cover it",
			before: "if available + v_elsewhere < r.min then",
			after: "if true then",
			sqlSeed: 4,
		},
		{
			breaks: "a return that is repeated counts again",
			before: "if exists (select 1 from lease_op o where o.id = r.op) then\n        continue;",
			after: "if exists (select 1 from lease_op o where o.id = r.op and o.kind = 'never') then\n        continue;",
		},
		{
			breaks: "what is returned is not available again",
			before: "update budget g set drawn_nano_usd = g.drawn_nano_usd - r.amount where g.id = r.budget;",
			after: "",
			sqlSeed: 17,
		},
		{
			breaks: "a return to an epoch that has left is carried out",
			before: "and i.state not in ('closing', 'left')) then\n    return; --",
			after: "and i.state not in ('never')) then\n    return; --",
		},
		{
			breaks: "leases are closed beside grants, returns and flushes of the epoch",
			before: "perform pg_advisory_xact_lock(hashtextextended('money '",
			after: "perform pg_advisory_xact_lock_shared(hashtextextended('money '",
		},
		{
			breaks: "leases are closed of an epoch that goes on",
			before:
				"perform instance_stand(p_instance, p_epoch, null, array['joining', 'live', 'silent', 'dead'], 'closing', null, null);",
			after: "",
		},
		{
			breaks: "a closed lease gives back what was spent",
			before:
				"select l.budget_id, l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd as rest\n      from lease l join budget g",
			after: "select l.budget_id, l.granted_nano_usd - l.returned_nano_usd as rest\n      from lease l join budget g",
			sqlSeed: 17,
		},
		{
			breaks: "an epoch has left while a lease of it is open",
			before:
				"done := not exists (select 1 from lease l where l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open')\n    and not",
			after: "done := not",
		},
		{
			breaks: "running requests are recorded as crashed though nobody attested it",
			before: "from gone v where p_journal_lost and not exists",
			after: "from gone v where not exists",
		},
	],
	"ledger.sql": [
		{
			breaks: "two flushes of an epoch run side by side",
			before: "  perform pg_advisory_xact_lock(hashtextextended('flush ' || p_instance || ' ' || p_epoch, 0));\n",
			after: "",
		},
		{
			breaks: "settlements count on leases that are being closed",
			before: "and i.state not in ('closing', 'left')) then\n    late := true;",
			after: "and i.state not in ('left')) then\n    late := true;",
		},
		{
			breaks: "a charge without a lease is recorded",
			before: "if v_missing is not null then",
			after: "if false then",
			sqlSeed: 12,
		},
		{
			breaks: "settlements are not added to their lease",
			before: "set settled_nano_usd = l.settled_nano_usd + u.nano,",
			after: "set settled_nano_usd = l.settled_nano_usd,",
			sqlSeed: 17,
		},
		{
			breaks: "what was known is charged again with what is new in its batch",
			before: "if v_out is not null then\n    select array_agg(t.budget_id)",
			after: "if false then\n    select array_agg(t.budget_id)",
		},
		{ breaks: "a batch that holds a request twice is refused", before: " or x.nth > 1 or", after: " or" },
		{
			breaks: "what is busy is recorded",
			before: "where (array[x.account, x.key, x.id::text] || x.budgets::text[]) && v_busy or to_timestamp",
			after: "where to_timestamp",
		},
		{
			breaks: "a late settlement is charged beyond what is available",
			before: "greatest(0, g.limit_nano_usd - g.drawn_nano_usd)\n        + case",
			after: "x.charged\n        + case",
		},
		{
			breaks: "a late settlement is not drawn from its budgets",
			before: "update budget g set drawn_nano_usd = g.drawn_nano_usd + v_fit - part.own,",
			after: "update budget g set drawn_nano_usd = g.drawn_nano_usd,",
			sqlSeed: 12,
		},
		{
			breaks: "a late settlement spends what the memory of a living epoch may spend",
			before: "i.epoch = p_epoch and i.state = 'closing');\n  select case",
			after: "i.epoch = p_epoch);\n  select case",
		},
		{
			breaks: "what a late settlement spends of its own lease is drawn once more",
			before: "g.drawn_nano_usd + v_fit - part.own,",
			after: "g.drawn_nano_usd + v_fit,",
		},
		{
			breaks: "late settlements of one budget do not exclude each other",
			before: "perform 1 from budget g where g.id = any (v_budgets) for update nowait;",
			after: "",
		},
		{
			breaks: "more credit is taken away than is available",
			before: "if p_amount < 0 and b.cap + p_amount < b.drawn and not p_forced then",
			after: "if false then",
		},
		{
			breaks: "a reference that two book at once counts twice",
			before: "if not found then\n    return null; -- booked",
			after: "if false then\n    return null; -- booked",
		},
		{
			breaks: "instances do not hear that credit was taken away",
			before: "jsonb_build_object('lowered', p_amount < 0)",
			after: "jsonb_build_object('lowered', false)",
		},
	],
	"projects.sql": [
		{
			breaks: "a key joins another account's project",
			before: "where x.id = p_id and x.account_id = p_account for share",
			after: "where x.id = p_id for share",
		},
		{
			breaks: "a key joins a project that is being archived",
			before: "x.account_id = p_account for share;",
			after: "x.account_id = p_account;",
		},
		{
			breaks: "a project's cap of a period limits what it ever spends",
			before: "values (p_id, 'project', p_account, case when p.cap_period = 'lifetime' then p.cap_nano_usd end);",
			after: "values (p_id, 'project', p_account, p.cap_nano_usd);",
			sqlSeed: 401,
			sqlProjects: true,
		},
		{
			breaks: "a project's changed cap does not reach its budget",
			before: "coalesce(cap_change(p_id, p.account_id, v_period, p.cap_period, p.cap_nano_usd, v_seq), v_seq)",
			after: "v_seq",
			sqlSeed: 401,
			sqlProjects: true,
		},
	],
	"keys.sql": [
		{
			breaks: "a key that was replaced at once goes on",
			before: "state = case when p_grace_ms <= 0 then 'revoked' else state end,",
			after: "state = state,",
		},
		{ breaks: "a long grace prolongs a key", before: "else least(expires_at, v_end) end", after: "else v_end end" },
		{ breaks: "a key is replaced twice", before: "if k.replaced_by is not null then", after: "if false then" },
		{ breaks: "a revoked key can be changed", before: "if k.state = 'revoked' then", after: "if false then" },
	],
	"limits.sql": [
		{
			breaks: "shares of a limit are granted beyond it",
			before: "else least(v_rest, greatest(r.need,",
			after: 'else least(r."limit", greatest(2 * r.need,',
		},
		{
			breaks: "asks for one key do not exclude each other",
			before: "    perform pg_advisory_xact_lock(r.hash);\n",
			after: "",
		},
		{ breaks: "an ask that arrives late counts", before: "    continue when v_seq > r.seq;\n", after: "" },
	],
	"caps.sql": [
		{
			breaks: "a period's first day goes by UTC, whatever the account's zone",
			before: "date_trunc(p_period, p_at at time zone a.time_zone)::date from account",
			after: "date_trunc(p_period, p_at at time zone 'UTC')::date from account",
		},
		{
			breaks: "credit of tomorrow is given out an hour before",
			before: "clock_timestamp() + interval '1 minute')",
			after: "clock_timestamp() + interval '1 hour')",
		},
		{
			breaks: "credit of a period that is over is given out for ever",
			before: "and p_start >= cap_day(p_account, p_period, clock_timestamp() - interval '1 hour')",
			after: "",
		},
		{
			breaks: "a budget is made beside the change of its cap",
			before: "from api_key x where x.id = v_owner for no key update skip locked;",
			after: "from api_key x where x.id = v_owner;",
		},
		{
			breaks: "a change of the cap leaves the present period as it was",
			before: "where g.id = p_owner or g.owner_id = p_owner and g.period = p_period and",
			after: "where g.id = p_owner and",
			sqlSeed: 401,
		},
		{
			breaks: "a lifetime cap ends before all instances know of its period",
			before:
				"case when b.cap is not null and p_former = 'lifetime' and p_cap is not null then p_seq else b.lift_seq end;",
			after: "null;",
		},
		{
			breaks: "instances do not hear that a cap was lowered",
			before: "v_limit is not null and (b.cap is null or v_limit < b.cap)));",
			after: "false));",
		},
		{
			breaks: "a changed cap does not reach the budget",
			before: "update budget g set limit_nano_usd = v_limit, lift_seq = v_lift where g.id = b.id;",
			after: "",
			sqlSeed: 401,
		},
	],
};

const FOLDER = "src/db/functions/";

/** As mutations of their files. Throws if a text does not occur exactly once: the source has changed. */
export function sqlMutations(root: string): Mutation[] {
	return Object.entries(SQL_MUTANTS).flatMap(([name, mutants]) => {
		const text = readFileSync(join(root, FOLDER, name), "utf8");
		return mutants.map(({ breaks, before, after }) => {
			const start = text.indexOf(before);
			if (start === -1 || text.includes(before, start + 1))
				throw new Error(`${FOLDER}${name} does not have once the text of the mutant: ${breaks}`);
			const line = text.slice(0, start).split("\n").length;
			return { file: FOLDER + name, line, change: breaks, start, end: start + before.length, replacement: after };
		});
	});
}
