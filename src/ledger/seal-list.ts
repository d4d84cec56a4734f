import { Fault } from "../base/fault.ts";
import { type Listed, listed, type Page, pageBounds } from "../db/page.ts";
import type { Statements } from "../db/statements.ts";
import { type NanoUsd, sumOfColumn } from "../money/nano-usd.ts";

/** A sealed day for display. */
export interface SealedDay {
	/** `2026-11-22`, in UTC. */
	readonly id: string;
	readonly requests: number;
	readonly charged: NanoUsd;
	/** Ledger entries: top-ups, adjustments and so on. */
	readonly entries: number;
	/** SHA-256 in hex. */
	readonly seal: string;
	readonly verifiedAtMs: number | null;
	/** How its rows differ from the seal; null if no difference is known. */
	readonly problem: string | null;
}

/** Newest first. `after` is a day. */
export async function listSeals(statements: Statements, page: Page): Promise<Listed<SealedDay>> {
	const { shown, asked, after } = pageBounds(page);
	if (after !== null && !isDay(after))
		throw new Fault("invalid_request", "A page goes on after a day like 2027-01-31.", { param: "after" });
	const rows = await statements<{
		day: string;
		usage_rows: string;
		charged: string;
		entry_rows: string;
		seal: string;
		verified_at: Date | null;
		problem: string | null;
	}>`
		select to_char(d.day, 'YYYY-MM-DD') as day, d.usage_rows, d.charged_nano_usd as charged, d.entry_rows, encode(d.seal, 'hex') as seal,
			d.verified_at, d.problem
		from sealed_day d where ${after}::text is null or d.day < ${after}::text::date order by d.day desc limit ${asked}`;
	const days = rows.map((row) => ({
		id: row.day,
		requests: Number(row.usage_rows),
		charged: sumOfColumn(row.charged),
		entries: Number(row.entry_rows),
		seal: row.seal,
		verifiedAtMs: row.verified_at?.getTime() ?? null,
		problem: row.problem,
	}));
	return listed(days, shown);
}

function isDay(text: string): boolean {
	const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
	return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}
