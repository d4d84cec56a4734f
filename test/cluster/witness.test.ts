import { beforeEach, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import { startWitness } from "../../src/cluster/witness.ts";
import { LIVENESS_CONNECTION_LIFE_MS } from "../../src/db/database.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { liveRow, standingOf } from "./fixture.ts";

const db = await withDatabase();
beforeEach(async () => {
	await db.sql`delete from instance_beat`;
});

const heartbeats = () => createPgHeartbeatStore(db.liveness);
const stateOf = async (id: string) => (await standingOf(db.sql, id))?.state;

/** A witness that uses the test's clock, with a count of its polls. */
function witness() {
	const clock = createManualClock();
	const store = createPgFenceStore(db.liveness);
	let looks = 0;
	const counted = {
		...store,
		async live() {
			const found = await store.live();
			looks += 1;
			return found;
		},
	};
	const running = startWitness({ store: counted, clock, log: silentLog }, { intervalMs: 1_000, graceMs: 500 });
	return {
		running,
		async pass(times: number) {
			for (let n = 0; n < times; n++) {
				const before = looks;
				await waitFor(() => clock.pending() > 0, "the witness to rest");
				clock.advance(1_000);
				await waitFor(() => looks > before, "the witness to look");
			}
			await waitFor(() => clock.pending() > 0, "the witness to rest");
		},
	};
}

/** A lease that ends between the third and the fourth poll, which finds it over but within the grace. */
const TTL_MS = 2_700;

test("the witness marks an instance as silent after its lease, by its own clock", async () => {
	for (const id of ["crashed", "running"]) await liveRow(heartbeats(), id, TTL_MS);
	const { running, pass } = witness();
	for (let n = 0; n < 4; n++) {
		await pass(1);
		await heartbeats().heartbeat("running", 1, 0, TTL_MS);
	}
	expect(await stateOf("crashed")).toBe("live");
	await pass(2);
	expect(await stateOf("crashed")).toBe("silent");
	expect(await stateOf("running")).toBe("live");
	running.stop();
});

test("the witness trusts a new or restored database server after the longest lease", async () => {
	await liveRow(heartbeats(), "running", TTL_MS);
	const store = createPgFenceStore(db.liveness);
	expect((await store.server()).unquietMs).toBe(0);
	await db.sql`update server_seen set mark = 'the one before'`;
	expect((await store.server()).unquietMs).toBe(TTL_MS + LIVENESS_CONNECTION_LIFE_MS);
	const { running, pass } = witness();
	for (const again of [false, true]) {
		// Simulates a restored server, which has the same label as before.
		if (again) await db.sql`select server_went_back()`;
		await pass(8);
		expect((await store.server()).unquietMs).toBe(TTL_MS + LIVENESS_CONNECTION_LIFE_MS);
		await pass(2);
		expect((await store.server()).unquietMs).toBe(0);
	}
	running.stop();
});
