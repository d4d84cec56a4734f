import type Stripe from "stripe";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { compareBooks } from "./stripe-clearing-books.ts";
import { type Clearing, compareLists, DAYS } from "./stripe-clearing-lists.ts";

export interface ClearingDeps {
	readonly tx: Transactional;
	readonly statements: Statements;
	readonly stripe: Stripe;
	readonly clock: Clock;
	readonly log: Log;
}

export interface ClearingOutcome {
	/** Objects of Stripe's lists that were compared. */
	readonly compared: number;
	/** Objects that no event had reported; they were processed now. */
	readonly taken: number;
	/** Rows of the books that were looked up at Stripe. */
	readonly asked: number;
}

const DAY_S = 24 * 3_600;
/** A clearing that takes longer is taken as interrupted. */
const RUNNING_MAX_S = 3_600;

/**
 * Compares Stripe's sessions, saved-card payments, refunds and disputes with the books, in both directions. An object
 * that no event reported is processed as if it had; remaining differences become findings. Runs once a day on one
 * instance; returns null if it is not due.
 */
export async function clearOnceADay(deps: ClearingDeps): Promise<ClearingOutcome | null> {
	const { statements, clock, log } = deps;
	const day = new Date(clock.wallMs()).toISOString().slice(0, 10);
	const claimed = await statements`
		insert into stripe_clearing as c (day) values (${day}::date) on conflict (day) do update set started_at = clock_timestamp()
		where c.finished_at is null and c.started_at < clock_timestamp() - make_interval(secs => ${RUNNING_MAX_S}::integer)
		returning 1`;
	if (claimed.length === 0) return null;
	try {
		const outcome = await clear(deps, day);
		await statements`
			update stripe_clearing set finished_at = clock_timestamp(), outcome = ${JSON.stringify(outcome)}::text::jsonb where day = ${day}::date`;
		log.info("payments were compared with Stripe's lists", { ...outcome });
		return outcome;
	} catch (error) {
		// The next look starts it again.
		await statements`update stripe_clearing set started_at = '-infinity' where day = ${day}::date`;
		throw error;
	}
}

async function clear(deps: ClearingDeps, day: string): Promise<ClearingOutcome> {
	const clearing: Clearing = {
		...deps,
		day,
		sinceS: Math.floor(deps.clock.wallMs() / 1000) - DAYS * DAY_S,
		outcome: { compared: 0, taken: 0, asked: 0 },
		paid: new Map(),
		charged: new Map(),
		refunds: new Set(),
		disputes: new Set(),
	};
	await compareLists(clearing);
	await compareBooks(clearing);
	return clearing.outcome;
}
