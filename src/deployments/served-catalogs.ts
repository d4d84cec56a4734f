import type { Statements } from "../db/statements.ts";

/** The catalogue that a live gateway serves. */
export interface ServedCatalog {
	readonly instanceId: string;
	/** SHA-256 of its models and rates; equal for gateways that serve the same. */
	readonly digest: string;
	readonly models: number;
	/** When the gateway last wrote its report. */
	readonly atMs: number;
}

const GATEWAYS_MAX = 200;

/** Of all live gateways, most recently written first. */
export async function listServedCatalogs(statements: Statements): Promise<ServedCatalog[]> {
	const rows = await statements<{ instance_id: string; digest: string; models: number; at: Date }>`
		select r.instance_id, encode(sha256(convert_to(r.models::text, 'UTF8')), 'hex') as digest, jsonb_array_length(r.models) as models, r.at
		from gateway_report r
		where exists (select 1 from instance_now i where i.id = r.instance_id and i.state = 'live' and i.lease_until > clock_timestamp())
		order by r.at desc limit ${GATEWAYS_MAX}`;
	return rows.map(({ instance_id, digest, models, at }) => ({
		instanceId: instance_id,
		digest,
		models,
		atMs: at.getTime(),
	}));
}
