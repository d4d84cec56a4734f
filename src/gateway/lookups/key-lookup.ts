import type { Clock } from "../../base/clock.ts";
import type { Statements } from "../../db/statements.ts";
import { presentPeriod, projectPeriod } from "../../keys/cap-budgets.ts";
import type { CapPeriod } from "../../keys/cap-period.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { ProjectEntry } from "../../keys/project-entry.ts";
import { keyBalance, projectBalance } from "../../ledger/balance.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { askDatabase } from "./ask-database.ts";

/** Answer of GET /v1/key: OpenRouter's fields, and exact decimal strings. */
export interface KeyAnswer {
	readonly data: {
		readonly label: string;
		/** US dollars as JSON numbers; null without a cap. */
		readonly limit: number | null;
		readonly limit_remaining: number | null;
		/** Period of the limit; null for a lifetime limit. */
		readonly limit_reset: "daily" | "weekly" | "monthly" | null;
		readonly usage: number;
		readonly is_free_tier: false;
		readonly cap_usd: string | null;
		readonly cap_period: CapPeriod;
		/** Spending that counts against the cap, since its period began. */
		readonly cap_spent_usd: string;
		/** ISO 8601; null: never. */
		readonly cap_renews_at: string | null;
		readonly remaining_usd: string | null;
		/** Lifetime spending. */
		readonly spent_usd: string;
		readonly held_usd: string;
		/** Null: all models. */
		readonly models: readonly string[] | null;
		/** ISO 8601; null: never. */
		readonly expires_at: string | null;
		readonly limits: Limits;
		/** The key's project, with the shared cap and limits; null: none. */
		readonly project: ProjectAnswer | null;
	};
}

interface Limits {
	readonly requests_per_minute: number | null;
	readonly concurrency: number | null;
}

interface ProjectAnswer {
	readonly id: string;
	readonly name: string;
	readonly limit: number | null;
	readonly limit_remaining: number | null;
	readonly limit_reset: "daily" | "weekly" | "monthly" | null;
	readonly cap_usd: string | null;
	readonly cap_period: CapPeriod;
	readonly cap_spent_usd: string;
	readonly cap_renews_at: string | null;
	readonly remaining_usd: string | null;
	readonly models: readonly string[] | null;
	readonly limits: Limits;
}

const RESETS = { lifetime: null, day: "daily", week: "weekly", month: "monthly" } as const;

/** GET /v1/key: the key's limits and spending. */
export async function keyAnswer(statements: Statements, clock: Clock, key: KeyEntry): Promise<KeyAnswer> {
	const period = presentPeriod(key, clock.wallMs());
	const budget = period?.budgets[0];
	const { cap, held, spent, capSpent, remaining } = await askDatabase(() =>
		keyBalance(statements, key.id, budget === undefined ? null : { cap: key.capNanoUsd, budget }),
	);
	return {
		data: {
			label: key.name,
			limit: cap === null ? null : jsonUsd(cap),
			limit_remaining: remaining === null ? null : jsonUsd(remaining),
			limit_reset: RESETS[period ? key.capPeriod : "lifetime"],
			usage: jsonUsd(spent),
			is_free_tier: false,
			cap_usd: cap === null ? null : formatUsd(cap),
			cap_period: key.capPeriod,
			cap_spent_usd: formatUsd(capSpent),
			cap_renews_at: period ? new Date(period.untilMs).toISOString() : null,
			remaining_usd: remaining === null ? null : formatUsd(remaining),
			spent_usd: formatUsd(spent),
			held_usd: formatUsd(held),
			models: key.models === null ? null : [...key.models],
			expires_at: key.expiresAtMs === null ? null : new Date(key.expiresAtMs).toISOString(),
			limits: limitsOf(key),
			project: key.project === null ? null : await projectAnswer(statements, clock, key, key.project),
		},
	};
}

async function projectAnswer(
	statements: Statements,
	clock: Clock,
	key: KeyEntry,
	project: ProjectEntry,
): Promise<ProjectAnswer> {
	const period = projectPeriod(key, project, clock.wallMs());
	const budget = period?.budgets[0];
	const { cap, capSpent, remaining } = await askDatabase(() =>
		projectBalance(statements, project.id, budget === undefined ? null : { cap: project.capNanoUsd, budget }),
	);
	return {
		id: project.id,
		name: project.name,
		limit: cap === null ? null : jsonUsd(cap),
		limit_remaining: remaining === null ? null : jsonUsd(remaining),
		limit_reset: RESETS[period ? project.capPeriod : "lifetime"],
		cap_usd: cap === null ? null : formatUsd(cap),
		cap_period: project.capPeriod,
		cap_spent_usd: formatUsd(capSpent),
		cap_renews_at: period ? new Date(period.untilMs).toISOString() : null,
		remaining_usd: remaining === null ? null : formatUsd(remaining),
		models: project.models === null ? null : [...project.models],
		limits: limitsOf(project),
	};
}

const limitsOf = ({ requestsPerMinute, concurrencyMax }: Pick<KeyEntry, "requestsPerMinute" | "concurrencyMax">) => ({
	requests_per_minute: requestsPerMinute,
	concurrency: concurrencyMax,
});
