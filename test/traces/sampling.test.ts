import { expect, test } from "bun:test";
import { createSampling } from "../../src/traces/otlp-traces.ts";
import { readTraceContext } from "../../src/traces/trace-context.ts";
import { SAMPLERS } from "../../src/traces/traces.ts";

const parent = (traceId: string, isSampled: boolean) => ({ traceId, spanId: "1".repeat(16), isSampled, state: "" });
const hex = (nth: number) => ((nth * 2_654_435_761) % 4_294_967_296).toString(16).padStart(8, "0");
const ids = Array.from({ length: 20_000 }, (_, nth) => `${"f".repeat(16)}${hex(nth)}${hex(nth + 7)}`);

test("services with the same sampling ratio record the same traces", () => {
	const [mine, theirs] = [0, 1].map(() => createSampling({ sampler: "traceidratio", ratio: 0.1 }));
	const recorded = ids.filter((id) => mine?.(parent(id, false)));
	expect(recorded.length).toBeGreaterThan(1_700);
	expect(recorded.length).toBeLessThan(2_300);
	expect(ids.filter((id) => theirs?.(parent(id, true)))).toEqual(recorded);
	const begun = ids.filter(() => mine?.(undefined)).length;
	expect(begun).toBeGreaterThan(1_700);
	expect(begun).toBeLessThan(2_300);
});

test("sampling follows the parent span's decision if configured", () => {
	const told = SAMPLERS.map((sampler) => {
		const isRecorded = createSampling({ sampler, ratio: 0 });
		return [sampler, ...[undefined, parent(ids[1] ?? "", false), parent(ids[1] ?? "", true)].map(isRecorded)];
	});
	expect(told).toEqual([
		["traceidratio", false, false, false],
		["always_on", true, true, true],
		["always_off", false, false, false],
		["parentbased_always_on", true, false, true],
		["parentbased_always_off", false, false, true],
		["parentbased_traceidratio", false, false, true],
	]);
});

test("sampling reads valid trace contexts only", () => {
	const id = "0af7651916cd43dd8448eb211c80319c";
	const read = (traceparent: string, tracestate = "") => readTraceContext(new Headers({ traceparent, tracestate }));
	expect(read(`00-${id}-b7ad6b7169203331-01`, "a=1,b=2")).toEqual({
		traceId: id,
		spanId: "b7ad6b7169203331",
		isSampled: true,
		state: "a=1,b=2",
	});
	expect(read(`00-${id}-b7ad6b7169203331-02`)?.isSampled).toBe(false);
	expect(read(`cc-${id}-b7ad6b7169203331-01-what-comes`)?.traceId).toBe(id);
	expect(read(`00-${id}-b7ad6b7169203331-01`, "x".repeat(513))?.state).toBe("");
	for (const wrong of [
		`00-${id}-b7ad6b7169203331-01-more`,
		`00-${id.toUpperCase()}-b7ad6b7169203331-01`,
		`00-${id}-0000000000000000-01`,
		`${id}`,
		"",
	])
		expect(read(wrong)).toBeUndefined();
});
