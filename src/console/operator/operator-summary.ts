import { listOpenFindings } from "../../billing/stripe-findings.ts";
import { toView } from "../../db/statements.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { listAdjustments } from "./operator-adjustments.ts";
import { listTopUpsByState } from "./operator-top-ups.ts";
import { lastReconciliation } from "./reconciliation.ts";

interface Held {
	readonly requestId: string;
	readonly accountId: string;
	readonly model: string;
	readonly reservedNanoUsd: NanoUsd;
	readonly admittedAtMs: number;
	readonly instanceId: string;
}

const WAITING_SHOWN = 20;
const HELD_SHOWN = 20;
/** Age in seconds from which a reservation is listed: slightly more than the default maximum duration of a request. */
const HELD_TOO_LONG_S = 35 * 60;

interface Counts {
	readonly live: number;
	readonly gone: number;
	readonly accounts: number;
	readonly waiting: number;
	readonly clearedAtMs: number | null;
}

export async function operatorSummary(parts: Parts<"statements" | "config" | "deployments">) {
	const { statements } = parts;
	const [topUps, adjustments, findings, held, [counts], reconciliation, deployed] = await Promise.all([
		listTopUpsByState(statements, "pending", { asked: WAITING_SHOWN, after: null }, parts.config.topUpSecondLook),
		listAdjustments(statements, { state: "pending" }, { asked: WAITING_SHOWN, after: null }),
		listOpenFindings(statements),
		statements<object>`
			select 'req_' || replace(r.request_id::text, '-', '') as request_id, r.account_id, r.model, r.reserved_nano_usd,
				r.admitted_at, r.instance_id
			from reservation r left join instance_now i on i.id = r.instance_id and i.epoch = r.epoch
			where r.admitted_at < clock_timestamp() - make_interval(secs => ${HELD_TOO_LONG_S}::integer) or i.state is distinct from 'live'
				or i.lease_until <= clock_timestamp()
			order by r.admitted_at limit ${HELD_SHOWN}`,
		statements<object>`
			select (select count(*)::float8 from instance_now where state = 'live' and lease_until > clock_timestamp()) as live,
				(select count(*)::float8 from instance_now where state in ('silent', 'dead') or state = 'live' and lease_until <= clock_timestamp()) as gone,
				(select count(*)::float8 from account) as accounts, (select count(*)::float8 from top_up where state = 'pending') as waiting,
				(select max(finished_at) from stripe_clearing) as cleared_at`,
		lastReconciliation(statements),
		parts.deployments.current(),
	]);
	const { live, gone, accounts, waiting, clearedAtMs } = toView<Counts>(counts ?? {});
	return {
		topUpsWaiting: waiting,
		waitingTopUps: topUps,
		waitingAdjustments: adjustments,
		/** Card payments for which Stripe and the books differ. */
		paymentFindings: findings,
		clearedAtMs,
		/** Reservations that are older than any request should be, or that belong to a dead instance. */
		heldTooLong: held.map(toView<Held>),
		replicasNotUp: deployed.replicas.filter((replica) => replica.health === "down" || replica.breaker !== "closed"),
		instances: { live, gone },
		reconciliation,
		accounts,
	};
}
