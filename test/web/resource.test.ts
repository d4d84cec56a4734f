import { expect, test } from "bun:test";
import { QueryObserver } from "@tanstack/react-query";
import { CACHED_MAX, createMemory } from "../../src/web/resource.ts";

test("the oldest answers that no page shows are forgotten, those on screen and the newest never", async () => {
	const memory = createMemory();
	const read = (key: string) => memory.fetchQuery({ queryKey: [key], queryFn: async () => key });
	await read("on screen");
	const leave = new QueryObserver(memory, { queryKey: ["on screen"], enabled: false }).subscribe(() => undefined);
	for (let at = 0; at < CACHED_MAX + 50; at += 1) {
		memory.setQueryData([`seen ${at}`], at, { updatedAt: at + 1 });
		expect(memory.getQueryCache().getAll().length).toBeLessThanOrEqual(CACHED_MAX);
	}
	const known = (key: string) => memory.getQueryData([key]);
	expect([known("on screen"), known(`seen ${CACHED_MAX + 49}`), known("seen 0")]).toEqual([
		"on screen",
		CACHED_MAX + 49,
		undefined,
	]);
	leave();
	memory.clear();
});
