import { expect, test } from "bun:test";
import { breaches, LOCKED_TABLES, type Seen } from "./lock-terms.ts";

const QUIET: Seen = { served: 100, refused: {}, closedMs: 0, revocationsMs: [20, 30], recoveredMs: 100 };

test("of a table of which nothing is said nobody may notice anything, and each thing that was noticed is named", () => {
	expect(breaches(undefined, QUIET)).toEqual([]);
	const noticed: Partial<Seen>[] = [
		{ served: 0 },
		{ recoveredMs: undefined },
		{ closedMs: 100 },
		{ refused: { "503 service_unavailable": 1 } },
		{ revocationsMs: [20, 9_000] },
		{ revocationsMs: [undefined] },
	];
	for (const seen of noticed) expect([seen, breaches(undefined, { ...QUIET, ...seen }).length]).toEqual([seen, 1]);
});

test("of the heartbeat's tables gates must close, with the one code that may be repeated, and open again", () => {
	const terms = LOCKED_TABLES["public.instance_beat"];
	const closed: Seen = {
		...QUIET,
		closedMs: 5_000,
		refused: { "503 service_unavailable": 50 },
		revocationsMs: [undefined],
	};
	expect(breaches(terms, closed)).toEqual([]);
	expect(breaches(terms, QUIET)).toHaveLength(1);
	expect(breaches(terms, { ...closed, refused: { "402 insufficient_quota": 1 } })).toHaveLength(1);
	expect(breaches(terms, { ...closed, recoveredMs: undefined })).toHaveLength(1);
});
