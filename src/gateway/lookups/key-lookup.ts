import type { Clock } from "../../base/clock.ts";
import type { Statements } from "../../db/statements.ts";
import { presentPeriod, projectPeriod } from "../../keys/cap-budgets.ts";
import type { KeyEntry, ProjectEntry } from "../../keys/key-entry.ts";
import { accountBalance, keyBalance } from "../../ledger/balance.ts";
import type { RequestLimits } from "../../limits/key-limits.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import { displaySum, formatUsd, type NanoUsd } from "../../money/nano-usd.ts";
import { queryDatabase } from "./ask-database.ts";

/** GET /v1/credits: balance, holds and spending of the account, in OpenRouter's fields and as exact decimals. */
export async function creditsAnswer(statements: Statements, accountId: string) {
	const { balance, available, held, spent } = await queryDatabase(() => accountBalance(statements, accountId));
	return {
		data: {
			/** OpenRouter's fields: the sum of all credit ever added and of all spending, as JSON numbers. */
			total_credits: jsonUsd(displaySum(balance, spent)),
			total_usage: jsonUsd(spent),
			/** Unspent credit: `available_usd` + `held_usd`. */
			balance_usd: formatUsd(balance),
			available_usd: formatUsd(available),
			held_usd: formatUsd(held),
			spent_usd: formatUsd(spent),
		},
	};
}

/** GET /v1/key: limits and spending of the key, in OpenRouter's fields and as exact decimals. */
export async function keyAnswer(statements: Statements, clock: Clock, key: KeyEntry) {
	const period = presentPeriod(key, clock.wallMs());
	const budget = period?.budgets[0];
	const balance = await queryDatabase(() =>
		keyBalance(statements, key.id, budget === undefined ? null : { cap: key.capNanoUsd, budget }),
	);
	return {
		data: {
			label: key.name,
			...capFields(key, period, balance),
			usage: jsonUsd(balance.spent),
			is_free_tier: false,
			spent_usd: formatUsd(balance.spent),
			held_usd: formatUsd(balance.held),
			expires_at: isoTime(key.expiresAtMs),
			project: key.project === null ? null : await projectAnswer(statements, clock, key, key.project),
		},
	};
}

async function projectAnswer(statements: Statements, clock: Clock, key: KeyEntry, project: ProjectEntry) {
	const period = projectPeriod(key, project, clock.wallMs());
	const budget = period?.budgets[0];
	const cap = budget === undefined ? null : { cap: project.capNanoUsd, budget };
	const balance = await queryDatabase(() => keyBalance(statements, project.id, cap, "project"));
	return { id: project.id, name: project.name, ...capFields(project, period, balance) };
}

const RESETS = { lifetime: null, day: "daily", week: "weekly", month: "monthly" } as const;

type Capped = Pick<KeyEntry, "capPeriod" | "models"> & RequestLimits;

function capFields(
	{ capPeriod, models, requestsPerMinute, concurrencyMax, tokensPerMinute }: Capped,
	period: { readonly untilMs: number } | null | undefined,
	{ cap, capSpent, remaining }: Record<"cap" | "remaining", NanoUsd | null> & { capSpent: NanoUsd },
) {
	return {
		/** The key's cap in US dollars as a JSON number; null without a cap. */
		limit: cap === null ? null : jsonUsd(cap),
		limit_remaining: remaining === null ? null : jsonUsd(remaining),
		/** Period of the cap; null for a lifetime cap. */
		limit_reset: RESETS[period ? capPeriod : "lifetime"],
		cap_usd: cap === null ? null : formatUsd(cap),
		cap_period: capPeriod,
		/** Spending that counts against the cap, since the current period started. */
		cap_spent_usd: formatUsd(capSpent),
		cap_renews_at: isoTime(period?.untilMs ?? null),
		remaining_usd: remaining === null ? null : formatUsd(remaining),
		/** Ids of the allowed models; null: all models. */
		models: models === null ? null : [...models],
		limits: { requests_per_minute: requestsPerMinute, concurrency: concurrencyMax, tokens_per_minute: tokensPerMinute },
	};
}

function isoTime(atMs: number | null): string | null {
	return atMs === null ? null : new Date(atMs).toISOString();
}
