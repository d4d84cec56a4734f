/** Why this instance should get no traffic, and its warnings. */
export interface HealthReport {
	readonly ready: boolean;
	readonly reasons: readonly string[];
	/** Problems that an operator should fix, although the instance can serve. */
	readonly warnings: readonly string[];
}

/** Reason of a draining process, which finishes its requests and should get no new ones. */
export const STOPPING_REASON = "the instance is stopping";

/** Returns the problem; undefined if there is none. */
export type HealthCheck = () => string | undefined;

/** Builds the response of `/readyz`. Runs every check for each response, so checks must be fast. */
export function createHealth(checks: {
	ready: readonly HealthCheck[];
	warn: readonly HealthCheck[];
}): () => HealthReport {
	const failing = (list: readonly HealthCheck[]) => list.map((check) => check()).filter((text) => text !== undefined);
	return () => {
		const reasons = failing(checks.ready);
		return { ready: reasons.length === 0, reasons, warnings: failing(checks.warn) };
	};
}

export function healthResponse(report: HealthReport): Response {
	const body = { status: report.ready ? "ready" : "not_ready", reasons: report.reasons, warnings: report.warnings };
	return Response.json(body, { status: report.ready ? 200 : 503, headers: { "cache-control": "no-store" } });
}
