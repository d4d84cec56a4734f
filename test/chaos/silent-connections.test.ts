import { expect, test } from "bun:test";
import { withDatabase } from "../support/database.ts";
import { nowMs, waitFor } from "../support/wait.ts";
import { SHORT_TRAFFIC_MS, withCustomers } from "./customers.ts";
import { LEASE_TTL_MS } from "./fleet.ts";

/** Tests of a Postgres that stops answering on existing connections and still answers on new ones. */

const { url } = await withDatabase();
const { fleet, member, keepAsking, rowsOf, warmKey } = await withCustomers(url);

test("an instance replaces silent connections to Postgres before its lease ends", async () => {
	const { account, key, before } = await warmKey();
	const leaseUntilMs = async () => {
		const [row] = await fleet.sql`select extract(epoch from max(lease_until)) * 1000 as at from instance_now`;
		return Number(row?.at);
	};
	member.proxy.freezeExisting();
	const asking = keepAsking(key);
	const leaseEndsMs = await leaseUntilMs();
	// Heartbeats and settlements must use new connections before the lease ends.
	await waitFor(async () => (await leaseUntilMs()) > leaseEndsMs, "the lease to be renewed", LEASE_TTL_MS);
	const renewedMs = nowMs();
	const sentBy = asking.sent.length;
	await waitFor(
		async () => (await rowsOf(account)).count >= before.length + sentBy,
		"what was settled meanwhile to be in Postgres",
		3 * LEASE_TTL_MS,
	);
	await waitFor(() => nowMs() - renewedMs > 1_000, "traffic to go on");
	const during = await asking.stop();
	expect(during.filter((one) => !one.complete)).toEqual([]);
}, 60_000);

test("an instance with silent connections to Postgres settles all requests and stops", async () => {
	await warmKey(SHORT_TRAFFIC_MS);
	member.proxy.freezeExisting();
	const frozenAtMs = nowMs();
	await waitFor(() => nowMs() - frozenAtMs > 2_000, "every part to be caught by the silence");
	const stoppedAtMs = nowMs();
	expect(await member.stop()).toBe(0);
	expect(nowMs() - stoppedAtMs).toBeLessThan(15_000);
	expect(member.journals()).toEqual([]);
}, 60_000);
