import { expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { LIMIT_FIELDS } from "../../src/catalog/limits-section.ts";
import { limitsWithin, withinMemory } from "../../src/catalog/memory-limits.ts";
import type { ServiceLimits } from "../../src/catalog/service-limits.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";

const MB = 1024 * 1024;
const OF_MEMORY = LIMIT_FIELDS.filter(({ name }) => /^(?:body|answer)_/.test(name));
const inMb = (limits: ServiceLimits) =>
	Object.fromEntries(OF_MEMORY.map(({ name, limit }) => [name, limits[limit] / MB]));

test("with memory enough the limits are those of the file", () => {
	for (const gb of [4, 24]) expect(limitsWithin(DEFAULT_LIMITS, gb * 1024 * MB)).toBe(DEFAULT_LIMITS);
});

test.each([
	[1024, [32, 64, 32, 256, 64]],
	[512, [32, 32, 32, 128, 32]],
	[256, [16, 16, 16, 64, 16]],
	[3, [1, 1, 1, 1, 1]],
])("with %d MB of it bodies and answers are bounded by that", (memoryMb, expected) => {
	const [body, bodies, ofAccount, answers, answersOfAccount] = expected as [number, number, number, number, number];
	expect(inMb(limitsWithin(DEFAULT_LIMITS, memoryMb * MB))).toEqual({
		body_mb: body,
		body_memory_mb: bodies,
		body_memory_account_mb: ofAccount,
		answer_memory_mb: answers,
		answer_memory_account_mb: answersOfAccount,
	});
});

test("whatever a file says, a body fits its account's bound, that all accounts' bound, and that the memory", () => {
	for (const memoryMb of [16, 100, 777, 2048, 5000]) {
		for (const [body, ofAccount, bodies] of [
			[1, 1, 1],
			[32, 96, 256],
			[200, 300, 400],
			[1024, 1024, 65_536],
		] as [number, number, number][]) {
			const given = {
				...DEFAULT_LIMITS,
				bodyBytesMax: body * MB,
				bodyMemoryAccountBytesMax: ofAccount * MB,
				bodyMemoryBytesMax: bodies * MB,
			};
			const held = inMb(limitsWithin(given, memoryMb * MB)) as Record<string, number>;
			expect(held.body_mb).toBeLessThanOrEqual(Math.min(body, held.body_memory_account_mb as number));
			expect(held.body_memory_account_mb).toBeLessThanOrEqual(Math.min(ofAccount, held.body_memory_mb as number));
			expect(held.body_memory_mb).toBeLessThanOrEqual(Math.min(bodies, Math.max(1, memoryMb / 16)));
		}
	}
});

test("a changed file is held to the memory too, which is said once of each", () => {
	const lines: Record<string, unknown>[] = [];
	const log = createLog({ level: "debug", write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
	let limits = DEFAULT_LIMITS;
	const catalog = withinMemory({ limits: () => limits } as Catalog, { log, memoryBytes: 256 * MB });
	for (let call = 0; call < 3; call += 1) expect(catalog.limits().bodyMemoryBytesMax).toBe(16 * MB);
	limits = { ...DEFAULT_LIMITS, bodyMemoryBytesMax: 8 * MB, bodyMemoryAccountBytesMax: 8 * MB, bodyBytesMax: 8 * MB };
	for (let call = 0; call < 3; call += 1) expect(catalog.limits().bodyMemoryBytesMax).toBe(8 * MB);
	expect(lines.map(({ message, memory_mb, body_memory_mb }) => [message, memory_mb, body_memory_mb])).toEqual([
		["the limits are lowered to the memory that there is", 256, 16],
		["the limits are lowered to the memory that there is", 256, 8],
	]);
});
