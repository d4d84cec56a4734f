import { expect, test } from "bun:test";
import { testsMayTake, untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { sendChat } from "./chat-client.ts";
import { startCountingUpstream } from "./counting-upstream.ts";
import { type FleetMember, startFleet } from "./fleet.ts";

testsMayTake(60_000);

const AT_ONCE = 10;
/** Duration of the requests: longer than a gateway takes to return after its heartbeats were held back. */
const RUNS_MS = 10_000;

// `limits/share-epochs.test.ts` and `limits/shared-limits.test.ts` cover many gateways of one database.
test.if(LONG)("a gateway silent beyond its lease returns within its share of the limit", async () => {
	const database = await withDatabase();
	const upstream = untilEnd(await startCountingUpstream({ gapMsMax: 100, failures: 0 }));
	const fleet = untilEnd(await startFleet({ databaseUrl: database.url, upstreamUrl: upstream.url, instances: 2 }));
	const [stayer, returner] = fleet.members as [FleetMember, FleetMember];
	const key = await fleet.key(await fleet.account(), { concurrencyMax: AT_ONCE });
	const ask = (member: FleetMember, words: number) =>
		sendChat(member, key, { words, stream: true, maxTokens: 2 * words, leaveAfterMs: RUNS_MS });
	const shareOf = async ({ index }: FleetMember) =>
		(await fleet.sql`select amount from key_share where key_id = ${key.id} and instance_id = ${`i${index}`}`)[0]
			?.amount;
	for (const member of fleet.members) expect(await ask(member, 3)).toMatchObject({ status: 200 });
	expect(await shareOf(returner)).toBeGreaterThan(0);

	const release = returner.proxy.hold("to server", / liveness$/);
	const standing = async () =>
		(await fleet.sql`select state from instance_now where id = ${`i${returner.index}`}`)[0]?.state;
	await waitFor(async () => (await standing()) === "silent", "somebody to find it silent", 30_000);
	const running = Array.from({ length: AT_ONCE }, () => ask(stayer, 400));
	await waitFor(async () => (await upstream.open()) === AT_ONCE, "the other one to run all that may");
	release();
	await waitFor(async () => (await fetch(`${returner.url}/readyz`)).ok, "it to be back");
	const answer = await ask(returner, 3);
	// The requests must still run: if they had ended, the test would prove nothing.
	expect(await upstream.open()).toBe(AT_ONCE);
	expect(answer).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
	await Promise.all(running);
	expect(await ask(returner, 3)).toMatchObject({ status: 200 });
});
