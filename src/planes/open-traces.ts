import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { Traces } from "../traces/traces.ts";

/** Nothing of OpenTelemetry is loaded where nobody wants traces. */
export async function openTraces({ traces }: Pick<Config, "traces">, deps: { log: Log }): Promise<Traces | undefined> {
	if (traces === null) return undefined;
	const { createOtlpTraces } = await import("../traces/otlp-traces.ts");
	return createOtlpTraces(deps, traces);
}
