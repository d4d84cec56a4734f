/**
 * Tests of a primary and a standby of the embedded PostgreSQL with two instances. After any loss, the books must
 * reconcile and agree with the upstream's counts. Long form: `bun run failover`.
 */
import { expect, test } from "bun:test";
import postgres from "postgres";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { runHere } from "../cli/run-here.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { startFailoverWorld } from "./failover-world.ts";

const REQUESTS = 6;

/** Journal modes to test. The long run includes the mode that survives a power loss. */
const MODES = LONG ? ["process", "host"] : ["process"];

test.each(MODES)(
	"a database server restored to an earlier time loses no answer with JOURNAL=%s",
	async (JOURNAL) => {
		await using world = await startFailoverWorld({ env: { JOURNAL } });
		const { fleet, members, servers } = world;
		const account = await fleet.account();
		const key = await fleet.key(account);
		await world.serve(key, REQUESTS);
		await servers.snapshot();
		await world.untilReady();
		await world.serve(key, REQUESTS);
		// Ends this instance's epoch in order before the rollback of the server loses its usage.
		await members[1].stop("SIGINT");
		await members[1].start();
		await world.serve(key, REQUESTS);
		await Bun.sleep(500);
		for (let times = LONG ? 2 : 1; times > 0; times--) {
			await servers.rollBack();
			await world.untilReady();
			await world.serve(key, REQUESTS);
			await world.expectNothingLost(fleet.sql);
		}
		await world.expectNothingLost(fleet.sql);
		expect(world.log(members[0])).toContain("the server went back in time");
		expect((await reconcile(fleet.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
	},
	120_000,
);

test("the service continues after a failover and refuses the former primary", async () => {
	await using world = await startFailoverWorld();
	const { fleet, members, servers } = world;
	const account = await fleet.account();
	const [key, other, lost] = [await fleet.key(account), await fleet.key(account), await fleet.key(account)];
	await world.serve(key, REQUESTS);
	await world.serve(other, 1);
	await world.serve(lost, 1);
	servers.cutReplication();
	await world.serve(key, REQUESTS);
	await fleet.applied(await revokeKey(fleet.statements, lost));
	const { id: given } = await fleet.key(account);
	await Bun.sleep(500);
	await servers.promote();
	// The former primary still runs, with all sessions on it.
	world.aim(servers.standby);
	const operator = { ...fleet.env, DATABASE_URL: servers.standby.url, DATA_DIR: `${fleet.folder}/operator-2` };
	const { exitCode, stdout } = await runHere(["key", "revoke", other.id, "--json"], operator);
	const trials = await Promise.all(members.map((member) => world.ask(other, member)));
	expect([exitCode, JSON.parse(stdout).effective]).toEqual([0, true]);
	expect(trials.map(({ code }) => code)).toEqual(["api_key_revoked", "api_key_revoked"]);
	// The standby lacks two changes: the revocation is repeated, the creation is reported to the operator.
	for (const member of members) expect((await world.ask(lost, member)).code).toBe("api_key_revoked");
	await world.untilReady();
	await world.serve(key, REQUESTS);
	const lines = members.flatMap((member) => world.log(member).split("\n"));
	expect(
		lines.filter((line) => line.includes("the database lost an act: repeat it") && line.includes(given)),
	).toHaveLength(1);
	world.aim(servers.primary);
	await waitFor(async () => (await world.readiness(members[0])).status !== "ready", "the refusal", 20_000);
	expect((await world.readiness(members[0])).reasons.join()).toContain("superseded server: its timeline is 1, and 2");
	world.aim(servers.standby);
	await world.untilReady();
	await world.serve(key, REQUESTS);
	const sql = postgres(servers.standby.url, { max: 1, onnotice: () => {} });
	await world.expectNothingLost(sql);
	await sql.end();
}, 120_000);
