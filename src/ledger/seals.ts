import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { type ListPage, type PageQuery, pageBounds, toPageById } from "../db/page.ts";
import { type Statements, toView } from "../db/statements.ts";
import { displaySumOfColumn, type NanoUsd } from "../money/nano-usd.ts";

/** Rows per statement; a statement takes some tens of milliseconds. */
export const STEP_ROWS = 2_000;
/** Longest time of a call in milliseconds; the next call continues where it ended. */
const RUN_MS = 2_000;

export interface SealDeps {
	readonly statements: Statements;
	readonly clock: Clock;
}

/** Repeats a bounded step until nothing is left or the call's time is over. Returns the sum of the steps' counts. */
export async function runSteps(clock: Clock, step: () => Promise<{ count: number; more: boolean }>): Promise<number> {
	const untilMs = clock.monotonicMs() + RUN_MS;
	let sum = 0;
	for (let more = true; more && clock.monotonicMs() < untilMs; ) {
		const done = await step();
		sum += done.count;
		more = done.more;
	}
	return sum;
}

/** Seals past days in bounded, resumable steps, in one process at a time. Returns the number of sealed days. */
export function sealDays({ statements, clock }: SealDeps): Promise<number> {
	return runSteps(clock, async () => {
		const [row] = await statements<{ state: "more" | "sealed" | "idle" | "busy" }>`
			select state from books_seal(${STEP_ROWS}::integer)`;
		const isSealed = row?.state === "sealed";
		if (isSealed) await sealLeases(statements);
		return { count: Number(isSealed), more: isSealed || row?.state === "more" };
	});
}

/** Seals leases until none is left. If the process is interrupted, the call after the next day seals the rest. */
async function sealLeases(statements: Statements): Promise<void> {
	for (let sealed = STEP_ROWS; sealed === STEP_ROWS; ) {
		const [row] = await statements<{ sealed: number }>`select books_seal_leases(${STEP_ROWS}::integer) as sealed`;
		sealed = row?.sealed ?? 0;
	}
}

/**
 * Verifies about `rowsMax` rows of sealed days, from where the last call ended. The next check of the books reports
 * differences. Returns the number of verified rows.
 */
export function verifyDays({ statements, clock }: SealDeps, rowsMax: number): Promise<number> {
	let left = rowsMax;
	return runSteps(clock, async () => {
		const [row] = await statements<{ state: "more" | "rest" | "busy"; seen: string }>`
			select state, seen from books_verify(${Math.min(STEP_ROWS, left)}::integer)`;
		const count = Number(row?.seen ?? 0);
		left -= count;
		return { count, more: row?.state === "more" && left > 0 };
	});
}

interface SealedDay {
	/** The day in UTC, such as `2026-11-22`. */
	readonly id: string;
	readonly requests: number;
	readonly charged: NanoUsd;
	readonly entries: number;
	/** Seal of the day: SHA-256 in hex. */
	readonly seal: string;
	readonly verifiedAtMs: number | null;
	/** How the rows differ from the seal; null if no difference is known. */
	readonly problem: string | null;
}

/** Lists sealed days, newest first. `page.after` is a day. */
export async function listSeals(statements: Statements, page: PageQuery): Promise<ListPage<SealedDay>> {
	const { shown, asked, after } = pageBounds(page);
	if (after !== null && !isDay(after))
		throw new Fault("invalid_request", "`after` must be a day such as 2027-01-31.", { param: "after" });
	const rows = await statements<
		Omit<SealedDay, "charged" | "verifiedAtMs"> & { charged: string; verified_at: Date | null }
	>`
		select to_char(d.day, 'YYYY-MM-DD') as id, d.usage_rows::float8 as requests, d.charged_nano_usd as charged,
			d.entry_rows::float8 as entries, encode(d.seal, 'hex') as seal, d.verified_at, d.problem
		from sealed_day d where ${after}::text is null or d.day < ${after}::text::date order by d.day desc limit ${asked}`;
	const days = rows.map(({ charged, ...row }) => ({
		...toView<Omit<SealedDay, "charged">>(row),
		charged: displaySumOfColumn(charged),
	}));
	return toPageById(days, shown);
}

function isDay(text: string): boolean {
	const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
	return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}
