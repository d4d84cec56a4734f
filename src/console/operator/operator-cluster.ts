import { type Statements, toView } from "../../db/statements.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { publicRates } from "../public-routes.ts";

export interface InstanceView {
	readonly id: string;
	readonly epoch: number;
	/** An instance is `silent` once its lease has ended, and `dead` once another instance has declared it dead. */
	readonly state: "joining" | "live" | "silent" | "closing" | "left" | "dead";
	readonly leaseUntilMs: number;
	readonly appliedSeq: number;
	readonly startedAtMs: number;
	readonly endedAtMs: number | null;
	readonly leases: number;
	/** Unspent credit in the instances' leases: idle, or reserved by running requests. */
	readonly heldNanoUsd: NanoUsd;
	readonly running: number;
	readonly runningNanoUsd: NanoUsd;
}

const INSTANCES_SHOWN = 200;

/** A replica's load is the sum over all gateways; its state is the worst that any gateway reports. */
export async function listDeployments({ deployments }: Parts<"deployments">) {
	const { models, replicas, connected } = await deployments.current();
	return models.map((model) => ({
		modelId: model.id,
		name: model.name,
		kind: model.kind,
		rates: publicRates(model.rateCard),
		status: connected(model.id) ? ("connected" as const) : ("unavailable" as const),
		replicas: replicas.filter((replica) => replica.modelId === model.id),
	}));
}

export async function listInstances(statements: Statements): Promise<InstanceView[]> {
	const rows = await statements<object>`
		select i.id, i.epoch, s.state, i.lease_until as lease_until_ms, i.applied_seq::float8, i.started_at, i.ended_at,
			coalesce(l.leases, 0)::float8 as leases, coalesce(l.held, 0) as held_nano_usd,
			coalesce(r.running, 0)::float8 as running, coalesce(r.reserved, 0) as running_nano_usd
		from instance_now i
			cross join lateral (select case when i.state = 'live' and i.lease_until <= clock_timestamp() then 'silent' else i.state end as state) s
			left join (
				select o.instance_id, o.epoch, count(*) as leases, sum(o.granted_nano_usd - o.returned_nano_usd - o.settled_nano_usd) as held
				from lease o where o.state = 'open' and o.budget_id like 'acc\\_%' group by 1, 2
			) l on l.instance_id = i.id and l.epoch = i.epoch
			left join (
				select instance_id, epoch, count(*) as running, sum(reserved_nano_usd) as reserved from reservation group by 1, 2
			) r on r.instance_id = i.id and r.epoch = i.epoch
		order by array_position(array['dead', 'closing', 'silent', 'live', 'joining', 'left'], s.state), i.started_at desc limit ${INSTANCES_SHOWN}`;
	return rows.map(toView<InstanceView>);
}
