import type { MutantsOfFile } from "./mutant.ts";

/** Caps that begin anew. */
export const capMutants: readonly MutantsOfFile[] = [
	{
		file: "db/functions/caps.sql",
		killers: ["ledger/cap-periods", "keys/cap-period", "ledger/projects", "ledger/functions"],
		mutants: [
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
				breaks: "an instance whose clock is some seconds ahead gets no credit at midnight",
				before: "clock_timestamp() + interval '1 minute')",
				after: "clock_timestamp())",
			},
			{
				breaks: "credit of a period that is over is given out for ever",
				before: "and p_start >= cap_day(p_account, p_period, clock_timestamp() - interval '1 hour')",
				after: "",
			},
			{
				breaks: "what was admitted before midnight gets no more behind it",
				before: "clock_timestamp() - interval '1 hour')",
				after: "clock_timestamp())",
			},
			{
				breaks: "a budget is made beside the change of its cap",
				before: "from api_key x where x.id = v_owner for no key update skip locked;",
				after: "from api_key x where x.id = v_owner;",
			},
			{
				breaks: "a project's budget is made beside the change of its cap",
				before: "from project x where x.id = v_owner for no key update skip locked;",
				after: "from project x where x.id = v_owner;",
			},
			{
				breaks: "a period of a cap that was taken away gets a budget",
				before: "k.cap_nano_usd is null or not cap_is_timely",
				after: "not cap_is_timely",
			},
			{
				breaks: "periods that are over get the cap of today",
				before: "g.period = p_period and cap_is_timely(p_account, g.period, g.period_start)",
				after: "g.period = p_period",
			},
			{
				breaks: "a lifetime's cap that gives way has no limit at once",
				before: "case when v_lift is not null then b.cap end;",
				after: "null;",
			},
			{
				breaks: "making a key's budget waits for whoever holds its row",
				before: "from api_key x where x.id = v_owner for no key update skip locked;",
				after: "from api_key x where x.id = v_owner for no key update;",
			},
			{
				breaks: "making a project's budget waits for whoever holds its row",
				before: "from project x where x.id = v_owner for no key update skip locked;",
				after: "from project x where x.id = v_owner for no key update;",
			},
			{
				breaks: "a held row is taken for one that is not there",
				before: "then 'busy' else 'unknown' end;",
				after: "then 'unknown' else 'unknown' end;",
			},
			{
				breaks: "a budget is made of a period that the cap does not have",
				before: "if k.cap_period <> v_period or k.cap_nano_usd is null or not",
				after: "if k.cap_nano_usd is null or not",
			},
			{
				breaks: "a budget is made of a day in the middle of its period",
				before: "      or v_start <> date_trunc(v_period, v_start)::date then",
				after: "      then",
			},
			{
				breaks: "the second instance that makes a budget hears an error",
				before: "v_period, v_start) on conflict do nothing;",
				after: "v_period, v_start);",
			},
			{
				breaks: "a change of the cap leaves the present period as it was",
				sqlSeed: 401,
				before: "where g.id = p_owner or g.owner_id = p_owner and g.period = p_period and",
				after: "where g.id = p_owner and",
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
				killers: ["keys/key-admin"],
			},
			{
				breaks: "a period of a project's cap is any key's who asks for it",
				before: "for no key update skip locked;\n  else",
				after: "limit 0;\n  else",
			},
			{
				breaks: "a changed cap does not reach the budget",
				sqlSeed: 401,
				before: "update budget g set limit_nano_usd = v_limit, lift_seq = v_lift where g.id = b.id;",
				after: "",
			},
		],
	},
	{
		file: "keys/cap-budgets.ts",
		killers: ["keys/cap-period", "admission/admission", "ledger/cap-periods", "ledger/projects"],
		mutants: [
			{
				breaks: "a period that is over goes on",
				before: "nowMs >= known.fromMs && nowMs < known.untilMs &&",
				after: "nowMs >= known.fromMs &&",
			},
			{
				breaks: "a clock that was set back stays in tomorrow's period",
				before: "nowMs >= known.fromMs && nowMs < known.untilMs &&",
				after: "nowMs < known.untilMs &&",
			},
			{
				breaks: "a period goes on by the account's former zone",
				before: " && known.timeZone === timeZone) return known;",
				after: ") return known;",
			},
			{
				breaks: "a key without a cap has periods",
				before: 'capPeriod === "lifetime" || capped.capNanoUsd === null',
				after: 'capPeriod === "lifetime"',
			},
			{
				breaks: "a key of a project draws on its own period alone",
				before: "return [project.id, ...(ofProject ?? []), ...(own ?? [])];",
				after: "return [project.id, ...(own ?? [])];",
			},
			{
				breaks: "a key of a project draws on its project's period alone",
				before: "return [project.id, ...(ofProject ?? []), ...(own ?? [])];",
				after: "return [project.id, ...(ofProject ?? [])];",
			},
		],
	},
	{
		file: "keys/cap-period.ts",
		killers: ["keys/cap-period"],
		mutants: [
			{
				breaks: "weeks begin on Sunday",
				before: "day.subtract({ days: day.dayOfWeek - 1 })",
				after: "day.subtract({ days: day.dayOfWeek % 7 })",
			},
			{
				breaks: "a day has 24 hours",
				before: "first.add(LENGTHS[period]).toZonedDateTime(timeZone).epochMilliseconds",
				after: 'first.toZonedDateTime(timeZone).epochMilliseconds + (period === "day" ? 86_400_000 : 604_800_000)',
			},
		],
	},
];
