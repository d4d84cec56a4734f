import type { Statements } from "../../db/statements.ts";
import { type NanoUsd, sumOfColumn } from "../../money/nano-usd.ts";
import type { ReplicaView } from "../../upstream/replicas/replica.ts";
import type { Parts } from "../console-deps.ts";

export interface DeploymentView {
	readonly modelId: string;
	readonly name: string;
	readonly kind: string;
	readonly status: "connected" | "unavailable";
	/** Load of all gateways, and the worst value of any of them. */
	readonly replicas: ReplicaView[];
}

export interface InstanceView {
	readonly id: string;
	readonly epoch: number;
	/** An instance whose lease ended is silent, whether or not another instance noticed it. */
	readonly state: "joining" | "live" | "silent" | "closing" | "left" | "dead";
	readonly leaseUntilMs: number;
	readonly appliedSeq: number;
	readonly startedAtMs: number;
	readonly endedAtMs: number | null;
	/** Open leases on accounts' credit. */
	readonly leases: number;
	/** Their unspent credit: idle, or reserved by running requests. */
	readonly heldNanoUsd: NanoUsd;
	readonly running: number;
	readonly runningNanoUsd: NanoUsd;
}

const INSTANCES_SHOWN = 200;

export async function listDeployments({ deployments }: Parts<"deployments">): Promise<DeploymentView[]> {
	const { models, replicas, connected } = await deployments.current();
	return models.map((model) => ({
		modelId: model.id,
		name: model.name,
		kind: model.kind,
		status: connected(model.id) ? "connected" : "unavailable",
		replicas: replicas.filter((replica) => replica.modelId === model.id),
	}));
}

interface Row {
	id: string;
	epoch: number;
	state: InstanceView["state"];
	lease_until: Date;
	applied_seq: string;
	started_at: Date;
	ended_at: Date | null;
	leases: string;
	held: string;
	running: string;
	reserved: string;
}

/** By urgency: dead instances that hold credit, unfinished shutdowns, silent ones, live ones, then former ones. */
export async function listInstances(statements: Statements): Promise<InstanceView[]> {
	const rows = await statements<Row>`
		select i.*, s.state, coalesce(l.leases, 0) as leases, coalesce(l.held, 0) as held, coalesce(r.running, 0) as running, coalesce(r.reserved, 0) as reserved
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
	return rows.map((row) => ({
		id: row.id,
		epoch: row.epoch,
		state: row.state,
		leaseUntilMs: row.lease_until.getTime(),
		appliedSeq: Number(row.applied_seq),
		startedAtMs: row.started_at.getTime(),
		endedAtMs: row.ended_at?.getTime() ?? null,
		leases: Number(row.leases),
		heldNanoUsd: sumOfColumn(row.held),
		running: Number(row.running),
		runningNanoUsd: sumOfColumn(row.reserved),
	}));
}
