import { expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import type { Catalog } from "../../src/catalog/catalog.ts";
import {
	DEFAULT_LIMITS,
	lowerLimitsToMemory,
	type ServiceLimits,
	withDerivedLimits,
	withMemoryLimits,
} from "../../src/catalog/service-limits.ts";

const MB = 1024 * 1024;
const inMb = ({ bodyBytesMax, bodyMemoryBytesMax, bodyMemoryAccountBytesMax, ...answers }: ServiceLimits) =>
	[
		...[bodyBytesMax, bodyMemoryBytesMax, bodyMemoryAccountBytesMax],
		...[answers.answerMemoryBytesMax, answers.answerMemoryAccountBytesMax],
	].map((bytes) => bytes / MB);

test("limits in the file stay unchanged if the machine has enough memory", () => {
	for (const gb of [4, 24]) expect(lowerLimitsToMemory(DEFAULT_LIMITS, gb * 1024 * MB)).toBe(DEFAULT_LIMITS);
	expect(inMb(DEFAULT_LIMITS)).toEqual([32, 256, 96, 1024, 256]);
});

test.each([
	[1024, [32, 64, 32, 256, 64]],
	[512, [32, 32, 32, 128, 32]],
	[256, [16, 16, 16, 64, 16]],
	[3, [1, 1, 1, 4, 1]],
])("a machine with %d MB of memory lowers the limits of bodies and answers", (memoryMb, expected) => {
	expect(inMb(lowerLimitsToMemory(DEFAULT_LIMITS, memoryMb * MB))).toEqual(expected);
});

test("one body may use less memory than one account, and one account less than all", () => {
	for (const memoryMb of [16, 100, 777, 2048, 5000]) {
		for (const [body, bodies] of [
			[1, 1],
			[32, 256],
			[200, 400],
			[1024, 65_536],
		] as [number, number][]) {
			const given = withDerivedLimits({ ...DEFAULT_LIMITS, bodyBytesMax: body * MB, bodyMemoryBytesMax: bodies * MB });
			const [one, all, ofAccount] = inMb(lowerLimitsToMemory(given, memoryMb * MB)) as [number, number, number];
			expect(one).toBeLessThanOrEqual(Math.min(body, ofAccount));
			expect(ofAccount).toBeLessThanOrEqual(all);
			expect(all).toBeLessThanOrEqual(Math.min(bodies, Math.max(1, memoryMb / 16)));
		}
	}
});

test("limits of a changed file are lowered to fit the memory and logged once", () => {
	const lines: Record<string, unknown>[] = [];
	const log = createLog({ level: "debug", write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
	let limits = DEFAULT_LIMITS;
	const catalog = withMemoryLimits({ limits: () => limits } as Catalog, { log, memoryBytes: 256 * MB });
	for (let call = 0; call < 3; call += 1) expect(catalog.limits().bodyMemoryBytesMax).toBe(16 * MB);
	limits = withDerivedLimits({ ...DEFAULT_LIMITS, bodyMemoryBytesMax: 8 * MB, bodyBytesMax: 8 * MB });
	for (let call = 0; call < 3; call += 1) expect(catalog.limits().bodyMemoryBytesMax).toBe(8 * MB);
	limits = { ...DEFAULT_LIMITS, bodyMemoryBytesMax: 32 * MB };
	for (let call = 0; call < 3; call += 1) expect(catalog.limits().bodyMemoryBytesMax).toBe(16 * MB);
	expect(lines.map(({ message, memory_mb, body_memory_mb }) => [message, memory_mb, body_memory_mb])).toEqual([
		["the limits are lowered to fit the available memory", 256, 16],
		["the limits are lowered to fit the available memory", 256, 16],
	]);
});
