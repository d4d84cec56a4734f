import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import durations from "../durations.json" with { type: "json" };
import { temporaryFolder } from "./at-end.ts";
import { writeDurations } from "./file-order.ts";

const path = join(temporaryFolder(), "timings.json");
const written = () => JSON.parse(readFileSync(path, "utf8")).files as Record<string, number>;

test("each file has a duration: what was measured, else what is listed, else a guess; half a list counts as none", () => {
	const listed = Object.keys(durations)[0] as keyof typeof durations;
	writeFileSync(path, '{"version":1,"files":{"test/gone.test.ts":7,"test/a.test.ts":9}}');
	writeDurations(path, ["test/a.test.ts", "test/b.test.ts", listed]);
	expect(written()).toMatchObject({ "test/a.test.ts": 9, "test/b.test.ts": 2_000, [listed]: durations[listed] });
	writeFileSync(path, '{"version":1,"fil');
	writeDurations(path, ["test/a.test.ts"]);
	expect(written()["test/a.test.ts"]).toBe(2_000);
});

test("the files that are listed are there", () => {
	for (const file of Object.keys(durations))
		expect([file, readFileSync(join(import.meta.dir, "../..", file)).length > 0]).toEqual([file, true]);
});
