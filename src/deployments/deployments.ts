import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";
import { isReplicaServing, type ReplicaView } from "../upstream/replicas/replica.ts";
import type { DeployedModel } from "./deployed-model.ts";

/** The models that gateways serve, according to the gateways' reports. */
export interface DeploymentsView {
	/** Number of live gateways. If it is 0, the models are those of the last gateway, all disconnected. */
	readonly gateways: number;
	readonly models: readonly DeployedModel[];
	/** Each server once, with the sum of its load on all gateways and the worst state that a gateway reports. */
	readonly replicas: readonly ReplicaView[];
	/** True if at least one gateway has a usable server for this model. */
	connected(modelId: string): boolean;
	/** Finds a model by id or alias. */
	find(name: string): DeployedModel | undefined;
}

export type Deployments = ReturnType<typeof createDeployments>;

const KEPT_MS = 500;
/** Maximum number of reports that are read; more than any installation has live gateways. */
const REPORTS_MAX = 200;

interface Row {
	live: boolean;
	models: readonly DeployedModel[];
	replicas: readonly ReplicaView[];
}

export function createDeployments({ statements, clock }: { statements: Statements; clock: Clock }) {
	let kept: { readonly atMs: number; readonly view: Promise<DeploymentsView> } | undefined;

	async function read(): Promise<DeploymentsView> {
		const rows = await statements<Row>`
			select live, case when place = 1 then models else '[]'::jsonb end as models, replicas from (
				select r.models, r.replicas, l.live, row_number() over (order by l.live desc, r.at desc) as place
				from gateway_report r, lateral (select exists (select 1 from instance_now i
					where i.id = r.instance_id and i.state = 'live' and i.lease_until > clock_timestamp()) as live) l
			) found where live or place = 1 order by place limit ${REPORTS_MAX}`;
		return viewOf(rows);
	}

	return {
		/** Reads from Postgres. Calls within half a second share one result. */
		current(): Promise<DeploymentsView> {
			const nowMs = clock.monotonicMs();
			if (kept === undefined || nowMs - kept.atMs >= KEPT_MS) {
				const view = read();
				const mine = { atMs: nowMs, view };
				kept = mine;
				view.catch(() => {
					if (kept === mine) kept = undefined;
				});
			}
			return kept.view;
		},
	};
}

/** Deletes reports of gateways that left long ago, except the newest report. */
export async function deleteOldReports(statements: Statements): Promise<void> {
	await statements`
		delete from gateway_report r where r.at < clock_timestamp() - interval '1 day'
			and not exists (select 1 from instance_now i where i.id = r.instance_id and i.state = 'live')
			and r.at < (select max(at) from gateway_report)`;
}

/**
 * Catalogues of the live gateways, newest report first. `digest`: SHA-256 of models and rates, equal for gateways with
 * the same catalogue. `atMs`: time of the last report.
 */
export async function listServedCatalogs(statements: Statements) {
	const rows = await statements<{ instanceId: string; digest: string; models: number; at: Date }>`
		select r.instance_id as "instanceId", encode(sha256(convert_to(r.models::text, 'UTF8')), 'hex') as digest,
			jsonb_array_length(r.models) as models, r.at
		from gateway_report r
		where exists (select 1 from instance_now i where i.id = r.instance_id and i.state = 'live' and i.lease_until > clock_timestamp())
		order by r.at desc limit ${REPORTS_MAX}`;
	return rows.map(({ at, ...served }) => ({ ...served, atMs: at.getTime() }));
}

function viewOf(rows: readonly Row[]): DeploymentsView {
	const live = rows.filter((row) => row.live);
	const models = rows[0]?.models ?? [];
	const byName = new Map(models.flatMap((model) => model.aliases.map((alias) => [alias, model] as const)));
	for (const model of models) byName.set(model.id, model);
	const connected = new Set(live.flatMap((row) => row.replicas.filter(isReplicaServing).map(({ modelId }) => modelId)));
	return {
		gateways: live.length,
		models,
		replicas: together((live.length === 0 ? rows : live).flatMap((row) => row.replicas)),
		connected: (modelId) => connected.has(modelId),
		find: (name) => byName.get(name),
	};
}

const HEALTHS = ["unknown", "up", "down"] as const;
const BREAKERS = ["closed", "half_open", "open"] as const;

/** Merges the replicas that gateways report. Gateways with the same catalogue use the same name for a server. */
function together(views: readonly ReplicaView[]): ReplicaView[] {
	const found = new Map<string, ReplicaView>();
	for (const view of views) {
		const name = JSON.stringify([view.alias, view.url, view.dialect]);
		const other = found.get(name);
		found.set(name, other === undefined ? view : sumOf(other, view));
	}
	return [...found.values()];
}

const sumOf = (a: ReplicaView, b: ReplicaView): ReplicaView => ({
	...a,
	health: worse(HEALTHS, a.health, b.health),
	breaker: worse(BREAKERS, a.breaker, b.breaker),
	inFlight: a.inFlight + b.inFlight,
	promptTokens: a.promptTokens + b.promptTokens,
	cachedTokens: a.cachedTokens + b.cachedTokens,
	waitMs: Math.max(a.waitMs, b.waitMs),
	maxConcurrency: a.maxConcurrency + b.maxConcurrency,
	draining: a.draining && b.draining,
});

const worse = <T>(order: readonly T[], a: T, b: T): T => (order.indexOf(a) >= order.indexOf(b) ? a : b);
