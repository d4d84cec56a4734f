/** Why this instance should get no traffic, and what else needs attention. */
export interface HealthReport {
	readonly ready: boolean;
	readonly reasons: readonly string[];
	/** Warnings do not take the instance out of service. */
	readonly warnings: readonly string[];
}

/** The reason of a draining process: it still serves, but must get no new traffic. */
export const STOPPING = "the instance is stopping";

/** Undefined if all is well. */
export type HealthCheck = () => string | undefined;

/** The answer of `/readyz`. Every check runs each time, so none may be slow. */
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
