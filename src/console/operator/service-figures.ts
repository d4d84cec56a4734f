import { csvLine } from "../../base/csv.ts";
import type { Statements } from "../../db/statements.ts";
import { toView } from "../../db/view-of.ts";
import type { DeploymentsView } from "../../deployments/deployments.ts";
import { displayRest, formatUsd, type NanoUsd } from "../../money/nano-usd.ts";
import { bucketMiddle } from "../usage/model-speed.ts";
import { buildSeries, type UsageRange, wholeBuckets } from "../usage/usage-query.ts";

interface Speed {
	readonly model: string;
	readonly kind: "first_token" | "rate";
	readonly atMs: number | null;
	readonly requests: number;
	readonly median: number;
	readonly high: number;
}

interface Load {
	readonly model: string;
	readonly replica: string;
	readonly atMs: number;
	/** Average number of requests in progress, and average capacity, while the replica was in the catalogue. */
	readonly used: number;
	readonly places: number;
}

interface Earned {
	readonly model: string;
	readonly atMs: number;
	readonly chargedNanoUsd: NanoUsd;
	readonly costNanoUsd: NanoUsd;
	readonly replicaHours: number;
}

/** Returns speeds, loads of replicas, and costs by model over time, from hourly sums. Faults as `wholeBuckets`. */
export async function serviceFigures(statements: Statements, filter: UsageRange & { readonly model: string | null }) {
	const { model, bucket, fromMs, toMs } = wholeBuckets(filter);
	const speeds = (by: string | null) => statements<object>`
		select model, kind, at, requests::float8 as requests, median, high
		from service_speed(${by}::text, to_timestamp(${fromMs}::float8 / 1000), to_timestamp(${toMs}::float8 / 1000), ${model}::text) order by model, at`;
	const [overTime, inAll, replicas, earned] = await Promise.all([
		speeds(bucket),
		speeds(null),
		statements<object>`
			select h.model, h.replica, date_trunc(${bucket}::text, h.hour, 'UTC') as at, sum(h.used_seconds) / sum(h.seconds) as used,
				sum(h.place_seconds) / sum(h.seconds) as places
			from replica_hour h where h.hour >= to_timestamp(${fromMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
				and (${model}::text is null or h.model = ${model}::text) group by 1, 2, 3 having sum(h.seconds) > 0 order by 2, 3`,
		statements<object>`
			select x.model, x.at, sum(x.charged) as charged_nano_usd, round(sum(x.cost)) as cost_nano_usd, sum(x.seconds) / 3600 as replica_hours from (
				select h.model, date_trunc(${bucket}::text, h.hour, 'UTC') as at, h.charged_nano_usd as charged, h.cost_pico_usd / 1000 as cost, 0 as seconds
				from service_hour h where h.model <> '' and h.hour >= to_timestamp(${fromMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
				union all
				select h.model, date_trunc(${bucket}::text, h.hour, 'UTC'), 0, h.cost_nano_usd::numeric, h.seconds
				from replica_hour h where h.hour >= to_timestamp(${fromMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
			) x where (${model}::text is null or x.model = ${model}::text) group by 1, 2 order by 1, 2`,
	]);
	const speedOf = (row: object) => {
		const { median, high, ...speed } = toView<Speed>(row);
		return { ...speed, median: bucketMiddle(median), high: bucketMiddle(high) };
	};
	return {
		bucket,
		toMs,
		starts: buildSeries([], { bucket, fromMs, toMs }).starts,
		speeds: overTime.map(speedOf),
		speedsInAll: inAll.map(speedOf),
		replicas: replicas.map(toView<Load>),
		earned: earned.map(toView<Earned>),
	};
}

/** A row for each model and bucket. The cost includes replicas without requests. */
export function marginCsv(earned: readonly Earned[]): string {
	const rows = earned.map(({ atMs, model, chargedNanoUsd, costNanoUsd, replicaHours }) => [
		new Date(atMs).toISOString(),
		model,
		...[chargedNanoUsd, costNanoUsd, displayRest(chargedNanoUsd, costNanoUsd)].map(formatUsd),
		replicaHours.toFixed(3),
	]);
	return [["time", "model", "revenue_usd", "cost_usd", "margin_usd", "replica_hours"], ...rows].map(csvLine).join("");
}

/** Adds the time since the previous call to the load and cost of each replica in the catalogue. */
export async function sampleService(statements: Statements, { models, replicas }: DeploymentsView): Promise<void> {
	const costs = new Map(models.map(({ id, cost }) => [id, cost]));
	const tokens = [...costs].map(([model, cost]) => ({ model, input: cost?.input ?? 0, output: cost?.output ?? 0 }));
	const seen = replicas
		.filter(({ draining }) => !draining)
		.map(({ modelId: model, alias: replica, inFlight: used, maxConcurrency: places }) => {
			return { model, replica, used, places, cost: costs.get(model)?.replicaHour ?? 0 };
		});
	await statements`select service_sample(${JSON.stringify(seen)}, ${JSON.stringify(tokens)})`;
}
