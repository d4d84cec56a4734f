/** One reason why this instance should get no traffic, or something to look at. */
export interface HealthReport {
	readonly ready: boolean;
	/** Why not ready. */
	readonly reasons: readonly string[];
	/** Does not take the instance out of service. */
	readonly warnings: readonly string[];
}

/** Why who serves on for a while, so that nobody is cut off, is to get no new traffic. */
export const STOPPING = "it was told to stop";

/** Undefined while all is well. */
export type HealthCheck = () => string | undefined;

/** What `/readyz` says: every check is asked each time, none may be slow. */
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
