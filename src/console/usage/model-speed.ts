import type { Clock } from "../../base/clock.ts";
import type { Statements } from "../../db/statements.ts";

/** Medians of a model's completed streams in the last day. Buckets are 12 % wide, so a median is accurate to 6 %. */
export interface ModelSpeed {
	readonly firstTokenMs: number;
	/** Measured after the first token; null if no answer was long enough. */
	readonly tokensPerSecond: number | null;
	readonly requests: number;
}

/** With fewer samples a median is imprecise and could reveal a single customer's usage. */
export const SPEED_REQUESTS_MIN = 20;
const FRESH_MS = 60_000;
const STEPS_PER_DECADE = 20;

/** Caches for a minute, so that visits do not load the database. */
export function createModelSpeeds({ statements, clock }: { statements: Statements; clock: Clock }) {
	let read: Promise<ReadonlyMap<string, ModelSpeed>> | undefined;
	let readAtMs = 0;
	return {
		/** Speeds by model id, at most a minute old. Omits models with fewer than SPEED_REQUESTS_MIN samples. */
		current() {
			const nowMs = clock.monotonicMs();
			if (read === undefined || nowMs - readAtMs > FRESH_MS) {
				readAtMs = nowMs;
				const reading = readSpeeds(statements);
				read = reading;
				reading.catch(() => {
					if (read === reading) read = undefined;
				});
			}
			return read;
		},
	};
}

/** Returns for each model the middle of the bucket that contains the median. */
async function readSpeeds(statements: Statements): Promise<ReadonlyMap<string, ModelSpeed>> {
	const rows = await statements<{ model: string; kind: "first_token" | "rate"; bucket: number; total: number }>`
		with classes as (
			select model, kind, bucket, sum(requests) as requests from model_speed
			where hour > now() - interval '1 day' group by 1, 2, 3
		), counted as (
			select *, sum(requests) over (partition by model, kind order by bucket) as seen,
				(sum(requests) over (partition by model, kind))::float8 as total from classes
		)
		select distinct on (model, kind) model, kind, bucket, total from counted
		where seen * 2 >= total and total >= ${SPEED_REQUESTS_MIN} order by model, kind, bucket`;
	const speeds = new Map<string, ModelSpeed>();
	for (const [model, own] of Map.groupBy(rows, (row) => row.model)) {
		const [first, rate] = [own.find(({ kind }) => kind === "first_token"), own.find(({ kind }) => kind === "rate")];
		if (first !== undefined)
			speeds.set(model, {
				firstTokenMs: bucketMiddle(first.bucket),
				tokensPerSecond: rate === undefined ? null : bucketMiddle(rate.bucket),
				requests: first.total,
			});
	}
	return speeds;
}

export const bucketMiddle = (bucket: number) => 10 ** ((bucket + 0.5) / STEPS_PER_DECADE);
