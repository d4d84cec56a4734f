import { expect, test } from "bun:test";
import { FENCE_GRACE_MS } from "../../src/cluster/fence.ts";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { appendControl, entryAt, liveRow } from "./fixture.ts";

const TTL_MS = 5_000;

const db = await withDatabase();

test("a change waits for a silent instance's lease plus a grace, by the caller's clock", async () => {
	await liveRow(createPgHeartbeatStore(db.liveness), "silent", TTL_MS);
	const entry = await entryAt(db.sql, await appendControl(db.statements, "key", "k", {}));
	const clock = createManualClock();
	let effectiveAtMs: number | undefined;
	const startedMs = clock.monotonicMs();
	const everywhere = waitForAllInstances({ liveness: db.liveness, clock }, entry, Number.POSITIVE_INFINITY).finally(
		() => {
			effectiveAtMs = clock.monotonicMs();
		},
	);
	// Advances the clock only while the function sleeps between two polls.
	await waitFor(
		() => {
			if (clock.pending() > 0) clock.advance(100);
			return effectiveAtMs !== undefined;
		},
		"the end of the lease",
		30_000,
	);
	expect(await everywhere).toMatchObject({ effective: true, effectiveByMs: null });
	expect((effectiveAtMs ?? 0) - startedMs).toBeGreaterThanOrEqual(TTL_MS + FENCE_GRACE_MS);
	expect((effectiveAtMs ?? 0) - startedMs).toBeLessThan(TTL_MS + FENCE_GRACE_MS + 1_000);
});
