import type { Clock } from "../../base/clock.ts";
import type { Statements } from "../../db/statements.ts";

/** Medians of a model's completed streams of the last day; each within 6 %, since classes are 12 % wide. */
export interface ModelSpeed {
	readonly firstTokenMs: number;
	/** After the first token; null if no completion was long enough. */
	readonly tokensPerSecond: number | null;
	readonly requests: number;
}

export interface ModelSpeeds {
	/** By model id; models with too few samples are left out. At most a minute old. */
	current(): Promise<ReadonlyMap<string, ModelSpeed>>;
}

/** Few samples are no measure, and would reveal a single customer's usage. */
export const SPEED_REQUESTS_MIN = 20;
const FRESH_MS = 60_000;
const STEPS_PER_DECADE = 20;

interface Row {
	model: string;
	kind: "first_token" | "rate";
	bucket: number;
	requests: string;
}

/** Cached for a minute, so that the database load does not grow with visits. */
export function createModelSpeeds({ statements, clock }: { statements: Statements; clock: Clock }): ModelSpeeds {
	let read: Promise<ReadonlyMap<string, ModelSpeed>> | undefined;
	let readAtMs = 0;
	return {
		current() {
			const nowMs = clock.monotonicMs();
			if (read === undefined || nowMs - readAtMs > FRESH_MS) {
				readAtMs = nowMs;
				const reading = readSpeeds(statements);
				read = reading;
				// The next call retries.
				reading.catch(() => {
					if (read === reading) read = undefined;
				});
			}
			return read;
		},
	};
}

async function readSpeeds(statements: Statements): Promise<ReadonlyMap<string, ModelSpeed>> {
	const rows = await statements<Row>`
		select model, kind, bucket, sum(requests) as requests from model_speed
		where hour > now() - interval '1 day' group by 1, 2, 3 order by 3`;
	const speeds = new Map<string, ModelSpeed>();
	for (const [model, own] of Map.groupBy(rows, (row) => row.model)) {
		const [first, rate] = [medianOf(own, "first_token"), medianOf(own, "rate")];
		if (first !== null)
			speeds.set(model, {
				firstTokenMs: first.median,
				tokensPerSecond: rate?.median ?? null,
				requests: first.requests,
			});
	}
	return speeds;
}

/** Middle of the class with the median. */
function medianOf(rows: readonly Row[], kind: Row["kind"]): { median: number; requests: number } | null {
	const own = rows.filter((row) => row.kind === kind);
	const requests = own.reduce((sum, row) => sum + Number(row.requests), 0);
	if (requests < SPEED_REQUESTS_MIN) return null;
	let seen = 0;
	for (const { bucket, requests: here } of own) {
		seen += Number(here);
		if (seen * 2 >= requests) return { median: 10 ** ((bucket + 0.5) / STEPS_PER_DECADE), requests };
	}
	return null;
}
