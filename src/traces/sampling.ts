import type { TraceContext } from "./trace-context.ts";
import type { TraceOptions } from "./traces.ts";

/** At least the last 52 bits of a trace id are random; a double holds them exactly. */
const ID_DIGITS = 13;
const ID_SPACE = 16 ** ID_DIGITS;

/** Whether a request is recorded. Services with the same trace id and ratio decide alike. */
export function createSampling({ sampler, ratio }: Pick<TraceOptions, "sampler" | "ratio">) {
	const isBased = sampler.startsWith("parentbased_");
	const own = isBased ? sampler.slice("parentbased_".length) : sampler;
	const share = own === "always_on" ? 1 : own === "always_off" ? 0 : ratio;
	return (parent: TraceContext | undefined): boolean => {
		if (parent === undefined) return Math.random() < share;
		if (isBased) return parent.isSampled;
		return Number.parseInt(parent.traceId.slice(-ID_DIGITS), 16) < share * ID_SPACE;
	};
}
