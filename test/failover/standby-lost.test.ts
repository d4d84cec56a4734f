/** Tests the loss of a synchronous standby: every commit on the primary then waits without a deadline. */
import { expect, test } from "bun:test";
import { runHere } from "../cli/run-here.ts";
import { waitFor } from "../support/wait.ts";
import { startFailoverWorld } from "./failover-world.ts";

test("the service names a lost synchronous standby, and cancels statements that hang", async () => {
	await using world = await startFailoverWorld();
	const { fleet, members, servers } = world;
	const account = await fleet.account();
	const [key, other] = [await fleet.key(account), await fleet.key(account)];
	await world.serve(key, 2);
	await servers.waitForStandby();
	await world.serve(key, 2);
	const operator = { ...fleet.env, DATA_DIR: `${fleet.folder}/operator` };
	const commit = async () => {
		const { findings } = JSON.parse((await runHere(["doctor", "--json"], operator)).stdout);
		return (findings as { state: string; what: string }[]).find(({ what }) => /commit/.test(what));
	};
	expect(await commit()).toMatchObject({ state: "ok", what: expect.stringMatching(/^a commit took \d/) });

	servers.cutReplication();
	for (const member of members)
		await waitFor(
			async () => (await world.readiness(member)).warnings.join().includes("no synchronous standby answers"),
			"the finding in readiness",
			15_000,
		);
	expect(await commit()).toMatchObject({
		state: "broken",
		what: expect.stringContaining("no synchronous standby answers (synchronous_standby_names is *)"),
	});
	const startedMs = performance.now();
	const { exitCode, stderr } = await runHere(["key", "revoke", key.id, "--timeout", "3s"], operator);
	expect([exitCode, performance.now() - startedMs < 25_000]).toEqual([1, true]);
	expect(stderr).toContain("did not answer in time");
	// Statements were given up every 2 to 5 s for half a minute; without a cancel, each would still run on the server.
	const waiting = await fleet.sql`select application_name from pg_stat_activity where wait_event = 'SyncRep'
		and clock_timestamp() - query_start > interval '12 seconds'`;
	expect(waiting.map(({ application_name }) => application_name)).toEqual([]);

	servers.resumeReplication();
	await world.untilReady();
	await world.serve(other, 2);
	await world.expectNothingLost(fleet.sql);
}, 120_000);
