import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createStates } from "../base/states.ts";
import type { Statements } from "../db/statements.ts";
import type { Reading } from "./metrics.ts";
import { createRefusalRows, type Refusal, type RefusalRow } from "./refusal-rows.ts";

/**
 * Writes refused requests to Postgres in the background, for people to read. They are no books: refusals above a bound
 * are counted and dropped, and no request waits for the writes.
 */
export interface Refusals {
	/** Never throws or waits. */
	record(refusal: Refusal): void;
	/** Rows that are not in Postgres yet. */
	waiting(): number;
	/** Refusals that are in no row and in no row's `repeats`. */
	dropped(): number;
	/** Tries once more to write the waiting rows. */
	stop(): Promise<void>;
}

type RefusalsState = "idle" | "armed" | "flushing" | "stopped";

const TRANSITIONS: Readonly<Record<RefusalsState, readonly RefusalsState[]>> = {
	idle: ["armed", "stopped"],
	armed: ["flushing", "stopped"],
	flushing: ["idle", "stopped"],
	stopped: [],
};
const BATCH_ROWS_MAX = 200;
const FLUSH_MS = 1_000;

export function createRefusals(deps: { statements: Statements; clock: Clock; log: Log }): Refusals {
	const { statements, clock, log } = deps;
	const { take, waiting } = createRefusalRows({ clock });
	let dropped = 0;
	let droppedSaid = 0;
	let away = false;
	const states = createStates(TRANSITIONS, "idle");
	let cancel = () => {};
	let flushing: Promise<void> | undefined;

	function arm(): void {
		if (!states.is("idle") || waiting.size === 0) return;
		states.enter("armed");
		cancel = clock.after(FLUSH_MS, () => {
			states.enter("flushing");
			flushing = flush().finally(() => {
				if (states.is("flushing")) states.enter("idle");
				arm();
			});
		});
	}

	/** Never rejects. Unwritten rows stay, within the bound, for the next time. */
	async function flush(): Promise<void> {
		sayDropped();
		const all = [...waiting.values()];
		for (let from = 0; from < all.length; from += BATCH_ROWS_MAX) {
			const rows = all.slice(from, from + BATCH_ROWS_MAX);
			const sent = rows.map((row) => ({ ...row }));
			try {
				await write(statements, sent);
			} catch (error) {
				if (!isAboutRows(error)) {
					if (!away) log.warn("refused requests cannot be written to the request log right now", { error });
					away = true;
					return;
				}
				// Rows that do not fit would fail forever and block the others.
				log.error("refused requests do not fit the request log", { rows: rows.length, error });
				dropped += rows.length;
				for (const row of rows) waiting.delete(row.id);
				continue;
			}
			away = false;
			// A row that was repeated during the write is written again a second later.
			for (const [at, row] of rows.entries()) if (row.repeats === sent[at]?.repeats) waiting.delete(row.id);
		}
	}

	function sayDropped(): void {
		if (dropped > droppedSaid) log.warn("refused requests are missing in the request log", { dropped });
		droppedSaid = dropped;
	}

	return {
		record(refusal) {
			if (!take(refusal)) dropped += 1;
			arm();
		},
		waiting: () => waiting.size,
		dropped: () => dropped,
		async stop() {
			if (!states.is("stopped")) states.enter("stopped");
			cancel();
			await flushing;
			await flush();
		},
	};
}

export function refusalReadings(refusals: Pick<Refusals, "waiting" | "dropped">): Reading[] {
	return [
		{
			name: "tollgate_refusals_waiting",
			help: "Refused requests that the request log does not have yet.",
			read: () => refusals.waiting(),
		},
		{
			name: "tollgate_refusals_dropped_total",
			help: "Refused requests that the request log will never have.",
			read: () => refusals.dropped(),
		},
	];
}

/** Inserts by id, so that a retry is safe; an existing row only takes newer repeats. */
async function write(statements: Statements, rows: readonly RefusalRow[]): Promise<void> {
	await statements`
		insert into refused_request as known (request_id, account_id, key_id, project_id, model, endpoint, code, status, message, param,
			available_nano_usd, held_nano_usd, required_nano_usd, affordable_tokens, refused_at, repeats, repeated_at)
		select r.id, r.account, r.key, r.project, r.model, r.endpoint, r.code, r.status, r.message, r.param, r.available, r.held, r.required,
			r.tokens, to_timestamp(r.at / 1000), r.repeats, to_timestamp(r.repeated / 1000)
		from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(id uuid, account text, key text, project text, model text, endpoint text,
			code text, status integer, message text, param text, available bigint, held bigint, required bigint, tokens integer,
			at double precision, repeats integer, repeated double precision)
		on conflict (request_id) do update set repeats = excluded.repeats, repeated_at = excluded.repeated_at
		where known.repeats < excluded.repeats`;
}

/** SQLSTATE classes 22 and 23: the values are at fault, not the connection. */
function isAboutRows(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return typeof code === "string" && /^2[23]\d/.test(code);
}
