import type { MutantsOfFile } from "./mutant.ts";
import { INSTANCE_LEASE } from "./mutant.ts";

/** The functions of money in Postgres. */
export const functionMutants: readonly MutantsOfFile[] = [
	{
		file: "db/functions/lease.sql",
		killers: ["ledger/store-contract", "ledger/functions", "ledger/slices", "ledger/refusals"],
		mutants: [
			{
				breaks: "a grant does not keep the closing of its epoch away",
				before:
					"begin\n  perform pg_advisory_xact_lock_shared(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));\n  if not exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state in ('live', 'silent'))",
				after:
					"begin\n  if not exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state in ('live', 'silent'))",
			},
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
				breaks: "a grant waits for the row of a budget that somebody holds",
				before: "into b\n      from budget g where g.id = r.budget for no key update skip locked;",
				after: "into b\n      from budget g where g.id = r.budget for no key update;",
			},
			{
				breaks: "more is granted than is available",
				sqlSeed: 5,
				before: "if v_amount > b.cap - b.drawn or v_amount < r.min then",
				after: "if v_amount < r.min then",
			},
			{
				breaks: "a lifetime's cap gives way beside an instance that does not know of the period's",
				before: "where i.state = 'live' and i.applied_seq < b.lift_seq) then",
				after: "where false) then",
				killers: ["ledger/cap-periods"],
			},
			{
				breaks: "a lifetime's cap gives way to a period's by the database's wall clock",
				before: "where i.state = 'live' and i.applied_seq < b.lift_seq) then",
				after: "where i.state = 'live' and i.lease_until > clock_timestamp() and i.applied_seq < b.lift_seq) then",
				killers: ["ledger/cap-periods"],
			},
			{
				breaks: "who crashed keeps a lifetime's cap from giving way",
				before: "where i.state = 'live' and i.applied_seq < b.lift_seq) then",
				after: "where i.state in ('live', 'silent') and i.applied_seq < b.lift_seq) then",
				killers: ["ledger/cap-periods"],
			},
			{
				breaks: "less is granted than helps",
				sqlSeed: 5,
				before: "greatest(r.min, (b.cap - b.drawn) / (2 * v_live)));",
				after: "(b.cap - b.drawn) / (2 * v_live));",
			},
			{
				breaks: "a grant that is repeated is granted again",
				before: "select o.amount_nano_usd into v_amount from lease_op o where o.id = r.op;",
				after: "select o.amount_nano_usd into v_amount from lease_op o where o.id = gen_random_uuid();",
			},
			{
				breaks: "the refusal of a repeated grant is not written down",
				before: "if v_amount > 0 or r.again then",
				after: "if v_amount > 0 then",
			},
			{
				breaks: "one instance may take all that is left",
				before: "(b.cap - b.drawn) / (2 * v_live)",
				after: "(b.cap - b.drawn)",
			},
			{
				breaks: "a contested budget is granted as freely as another",
				before: "case when contested then r.min else r.want end",
				after: "r.want",
			},
			{
				breaks: "a grant counts as an answer of an instance that holds something idle",
				before: "case when x.state = 'closed' then greatest(x.recalled, excluded.recalled) else x.recalled end",
				after: "greatest(x.recalled, excluded.recalled)",
			},
			{
				breaks: "a refusal counts as proved while an epoch is being closed",
				before: "(i.state in ('live', 'closing') or exists",
				after: "(i.state in ('live') or exists",
			},
			{
				breaks: "a refusal counts as proved beside the leases of an epoch whose journal is being replayed",
				before: "n.epoch > i.epoch and n.state in ('live', 'silent')",
				after: "n.epoch > i.epoch and n.state in ('never')",
			},
			{
				breaks: "a refusal is not proved though too little is there anywhere",
				before: "if available + v_elsewhere < r.min then",
				after: "if false then",
			},
			{
				breaks: "a refusal is proved though all together would cover it",
				sqlSeed: 4,
				before: "if available + v_elsewhere < r.min then",
				after: "if true then",
			},
			{
				breaks: "what others were granted between two looks is not seen in what leases were granted",
				before: "sum(x.granted_nano_usd) - b.cap into lent",
				after: "0 - b.cap into lent",
			},
			{
				breaks: "an answer to an earlier recall counts for a later one",
				sqlSeed: 4,
				before: "else x.recalled < coalesce(r.ticket, 9223372036854775807) end)",
				after: "else x.recalled = 0 end)",
			},
			{
				breaks: "a return that is repeated counts again",
				before: "if exists (select 1 from lease_op o where o.id = r.op) then\n        continue;",
				after: "if exists (select 1 from lease_op o where o.id = r.op and o.kind = 'never') then\n        continue;",
			},
			{
				breaks: "what is returned is not available again",
				sqlSeed: 17,
				before: "update budget g set drawn_nano_usd = g.drawn_nano_usd - r.amount where g.id = r.budget;",
				after: "",
			},
			{
				breaks: "a return does not answer the recall",
				before: "recalled = greatest(x.recalled, coalesce(r.recall, 0)),",
				after: "recalled = x.recalled,",
			},
			{
				breaks: "a lease is open though nothing is left on it",
				before: "state = case when l.rest = r.amount then 'closed' else x.state end",
				after: "state = x.state",
			},
			{
				breaks: "a return to an epoch that has left is carried out",
				before: "and i.state not in ('closing', 'left')) then\n    return; --",
				after: "and i.state not in ('never')) then\n    return; --",
			},
			{
				breaks: "a return waits for the row of a budget that somebody holds",
				before: "perform 1 from budget g where g.id = r.budget for no key update skip locked;",
				after: "perform 1 from budget g where g.id = r.budget for no key update;",
			},
			{
				breaks: "a recall asks the one who sent it",
				before: "where (r.instance_id, r.epoch) <> (p_instance, p_epoch) and r.at >",
				after: "where r.at >",
			},
			{
				breaks: "recalls that were answered are asked again",
				before: "l.state = 'open' and l.recalled < r.ticket",
				after: "l.state = 'open'",
			},
			{
				breaks: "nobody is told of a recall",
				before: "perform pg_notify('tollgate_recall', '');",
				after: "",
				killers: ["ledger/functions"],
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
				sqlSeed: 17,
				before:
					"select l.budget_id, l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd as rest\n      from lease l join budget g",
				after: "select l.budget_id, l.granted_nano_usd - l.returned_nano_usd as rest\n      from lease l join budget g",
			},
			{
				breaks: "the closing of leases waits for a row that somebody holds",
				before: "limit p_limit for no key update of l, g skip locked loop",
				after: "limit p_limit for no key update of l, g loop",
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
	},
	{
		file: "db/functions/ledger.sql",
		killers: ["ledger/mixed-batches", "ledger/store-contract", "ledger/functions", "ledger/refusals"],
		mutants: [
			{
				breaks: "what all settlements of a batch said is recorded of the first alone",
				before: " v_batch := of_all(p_batch);",
				after: "",
			},
			{
				breaks: "two flushes of an epoch run side by side",
				before: "  perform pg_advisory_xact_lock(hashtextextended('flush ' || p_instance || ' ' || p_epoch, 0));\n",
				after: "",
			},
			{
				breaks: "a flush does not keep the closing of its epoch away",
				before:
					"'flush ' || p_instance || ' ' || p_epoch, 0));\n  perform pg_advisory_xact_lock_shared(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));\n",
				after: "'flush ' || p_instance || ' ' || p_epoch, 0));\n",
			},
			{
				breaks: "settlements count on leases that are being closed",
				before: "and i.state not in ('closing', 'left')) then\n    late := true;",
				after: "and i.state not in ('left')) then\n    late := true;",
			},
			{
				breaks: "a charge without a lease is recorded",
				sqlSeed: 12,
				before: "if v_missing is not null then",
				after: "if false then",
			},
			{
				breaks: "a settled request is shown as running",
				before: "where not exists (select 1 from usage_event e where e.request_id = x.id)\n    on conflict do nothing;",
				after: "on conflict do nothing;",
			},
			{
				breaks: "settlements are not added to their lease",
				sqlSeed: 17,
				before: "set settled_nano_usd = l.settled_nano_usd + u.nano,",
				after: "set settled_nano_usd = l.settled_nano_usd,",
			},
			{
				breaks: "what was known is charged again with what is new in its batch",
				before: "if v_out is not null then\n    select array_agg(t.budget_id)",
				after: "if false then\n    select array_agg(t.budget_id)",
			},
			{
				breaks: "a batch that holds what is known is refused",
				before: " or exists (select 1 from usage_event e where e.request_id = x.id);\n      if",
				after: ";\n      if",
			},
			{
				breaks: "a batch that holds a request twice is refused",
				before: " or x.nth > 1 or",
				after: " or",
			},
			{
				breaks: "what was left out for its busy row is recorded where another of its batch was known",
				before: "where x.place = any (v_out) or x.nth > 1",
				after: "where x.nth > 1",
			},
			{
				breaks: "what is busy is recorded",
				before: "where (array[x.account, x.key, x.id::text] || x.budgets::text[]) && v_busy or to_timestamp",
				after: "where to_timestamp",
			},
			{
				breaks: "what was admitted before the time whose requests are removed is recorded",
				before: "&& v_busy or to_timestamp(x.at / 1000.0) < v_before;",
				after: "&& v_busy;",
			},
			{
				breaks: "what is new beside what was known is not charged to a project",
				before:
					"\n        union all select unnest(x.budgets), x.charged from x where x.budgets is not null\n      ) b where b.charged > 0 group by 1) t;",
				after: "\n      ) b where b.charged > 0 group by 1) t;",
			},
			{
				breaks: "a late settlement is charged beyond what is available",
				before: "greatest(0, g.limit_nano_usd - g.drawn_nano_usd)\n        + case",
				after: "x.charged\n        + case",
			},
			{
				breaks: "a late settlement is not drawn from its budgets",
				sqlSeed: 12,
				before: "update budget g set drawn_nano_usd = g.drawn_nano_usd + v_fit - part.own,",
				after: "update budget g set drawn_nano_usd = g.drawn_nano_usd,",
			},
			{
				breaks: "a late settlement is written off beside a lease of its own that covers it",
				before: "v_closing := exists",
				after: "v_closing := false and exists",
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
				breaks: "what an operator gave up for lost stays lost though it was heard of after all",
				before:
					"  delete from usage_event e where e.request_id = x.id and e.rate_card_id = '' and e.charged_nano_usd = 0;\n",
				after: "",
			},
			{
				breaks: "a late settlement that is repeated is an error",
				before: "if exists (select 1 from usage_event e where e.request_id = x.id) then\n    return;",
				after: "if false then\n    return;",
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
				killers: [...INSTANCE_LEASE],
			},
		],
	},
	{
		file: "db/functions/projects.sql",
		killers: ["keys/project-admin"],
		mutants: [
			{
				breaks: "a key joins another account's project",
				before: "where x.id = p_id and x.account_id = p_account for share",
				after: "where x.id = p_id for share",
			},
			{
				breaks: "a key joins an archived project",
				before: "if v_state = 'archived' then",
				after: "if false then",
			},
			{
				breaks: "a key joins a project that is being archived",
				before: "x.account_id = p_account for share;",
				after: "x.account_id = p_account;",
			},
			{
				breaks: "an archived project can be changed",
				before: "if p.state = 'archived' and p_patch <> '{\"state\":\"archived\"}' then",
				after: "if false then",
			},
			{
				breaks: "a project's cap of a period limits what it ever spends",
				sqlSeed: 401,
				sqlProjects: true,
				before: "values (p_id, 'project', p_account, case when p.cap_period = 'lifetime' then p.cap_nano_usd end);",
				after: "values (p_id, 'project', p_account, p.cap_nano_usd);",
			},
			{
				breaks: "instances do not hear that a project was changed",
				before: "v_seq := control_append('project', p_id, project_fields(p));",
				after: "v_seq := 0;",
			},
			{
				breaks: "a project's changed cap does not reach its budget",
				sqlSeed: 401,
				sqlProjects: true,
				before: "coalesce(cap_change(p_id, p.account_id, v_period, p.cap_period, p.cap_nano_usd, v_seq), v_seq)",
				after: "v_seq",
			},
			{
				breaks: "requests do not note their project",
				before: "case when p_budgets[1] like 'proj\\_%' then p_budgets[1] end",
				after: "null::text",
				killers: ["ledger/projects"],
			},
		],
	},
	{
		file: "db/functions/keys.sql",
		killers: ["keys/key-admin"],
		mutants: [
			{
				breaks: "a replacement leaves its project",
				before: "k.made_by, k.reads_only, k.project_id)",
				after: "k.made_by, k.reads_only, null)",
				killers: ["keys/project-admin"],
			},
			{
				breaks: "a key that was replaced at once goes on",
				before: "state = case when p_grace_ms <= 0 then 'revoked' else state end,",
				after: "state = state,",
			},
			{
				breaks: "a long grace prolongs a key",
				before: "else least(expires_at, v_end) end",
				after: "else v_end end",
			},
			{
				breaks: "a key is replaced twice",
				before: "if k.replaced_by is not null then",
				after: "if false then",
			},
			{
				breaks: "a revoked key can be changed",
				before: "if k.state = 'revoked' then",
				after: "if false then",
			},
			{
				breaks: "a customer changes another's key",
				before:
					"select * into k from api_key where id = p_id and (p_account is null or account_id = p_account) for update;\n  if not found then\n    raise exception 'There is no key %.', p_id using errcode = 'TG002';\n  end if;\n  v_period := k.cap_period;\n  if k.state = 'revoked' then",
				after:
					"select * into k from api_key where id = p_id for update;\n  if not found then\n    raise exception 'There is no key %.', p_id using errcode = 'TG002';\n  end if;\n  v_period := k.cap_period;\n  if k.state = 'revoked' then",
			},
		],
	},
	{
		file: "db/functions/limits.sql",
		killers: ["limits/shared-limits"],
		mutants: [
			{
				breaks: "shares of a limit are granted beyond it",
				before: "else least(v_rest, greatest(r.need,",
				after: 'else least(r."limit", greatest(2 * r.need,',
			},
			{
				breaks: "nobody is told that an instance lacks a share of a limit",
				before: "if v_rest >= r.need then",
				after: "if true then",
			},
			{
				breaks: "asks for one key do not exclude each other",
				before: "    perform pg_advisory_xact_lock(r.hash);\n",
				after: "",
			},
			{ breaks: "an ask that arrives late counts", before: "    continue when v_seq > r.seq;\n", after: "" },
			{
				breaks: "whoever asks for a share waits for the row of another's",
				before: "for update skip locked) nobodys",
				after: ") nobodys",
			},
			{
				breaks: "what an instance counted is free as soon as it dies",
				before: "or s.kind = 'rate' and greatest",
				after: "or s.kind = 'never' and greatest",
			},
		],
	},
];
