import { afterEach, describe, expect, test } from "bun:test";
import { nowMs, waitFor } from "../support/wait.ts";
import type { SentRequest } from "./chat-client.ts";
import { withCustomers } from "./customers.ts";
import { LEASE_TTL_MS } from "./fleet.ts";
import { withOwnPostgres } from "./own-postgres.ts";

/** Time without Postgres that a gate survives: it closes up to 2 s early, and the last heartbeat may be 1 s old. */
const SURVIVED_MS = LEASE_TTL_MS - LEASE_TTL_MS / 5 - 1_000;

const postgres = await withOwnPostgres();
const { fleet, member, ask, keepAsking, rowsOf, warmKey } = await withCustomers(postgres.url);

/** Repairs the database after a failed test, so that later tests can run. */
afterEach(async () => {
	await postgres.start();
	if (member.process()) member.proxy.thaw(false);
});

const readiness = async (to = member) => {
	const response = await fetch(`${to.url}/readyz`);
	return { status: response.status, body: (await response.json()) as { reasons: string[] } };
};

const servedAfter = (sent: readonly SentRequest[], ms: number) =>
	sent.filter((one) => one.status === 200 && one.sentAtMs > ms);

const chargeOf = (sent: readonly SentRequest[]) =>
	sent.reduce((sum, one) => sum + Math.round((one.usage?.cost ?? 0) * 1e9), 0);

describe("an outage of Postgres", () => {
	test("that is shorter than a lease refuses only keys that the instance has not loaded", async () => {
		const { account, key, before } = await warmKey();
		const stranger = await fleet.key(account);
		const unmade = { id: "none", secret: stranger.secret.replace(/.$/, (last) => (last === "0" ? "1" : "0")) };

		const goneAtMs = nowMs();
		await postgres.stop();
		const asking = keepAsking(key);
		const [strange, wrong] = await Promise.all([ask(stranger), ask(unmade)]);
		expect([strange.status, strange.code, strange.retryAfter]).toEqual([503, "service_unavailable", "1"]);
		// A wrong checksum is detected without the database.
		expect(wrong.status).toBe(401);
		await waitFor(() => nowMs() - goneAtMs > SURVIVED_MS - 500, "the outage to last", LEASE_TTL_MS);
		// Read before the database starts, because that may take longer than the lease.
		const ready = await readiness();
		const during = await asking.stop();
		await postgres.start();

		const failed = during.filter((one) => !one.complete);
		expect(failed.map(({ status, code, sentAtMs }) => [status, code, Math.round(sentAtMs - goneAtMs)])).toEqual([]);
		// The number of requests depends on the machine, so only a minimum is checked.
		expect(during.length).toBeGreaterThan(4);
		expect(ready).toEqual({ status: 200, body: expect.anything() });

		const all = [...before, ...during];
		await waitFor(async () => (await rowsOf(account)).count === all.length, "all usage to be in Postgres");
		expect((await rowsOf(account)).charged).toBe(chargeOf(all));
		await waitFor(async () => (await ask(stranger)).status === 200, "the other key to be known");
	}, 60_000);

	test("that is longer than a lease stops admission with a reason and loses no request", async () => {
		const { account, key, before } = await warmKey();
		const goneAtMs = nowMs();
		await postgres.stop();
		const stoppedAtMs = nowMs();
		const asking = keepAsking(key);
		await waitFor(() => asking.sent.some((one) => one.status === 503), "the gate to close", 2 * LEASE_TTL_MS);
		// Counted by the time of sending, because a busy machine notices late that its gate is closed.
		expect(servedAfter(asking.sent, stoppedAtMs + LEASE_TTL_MS)).toEqual([]);
		const closed = await readiness();
		expect(closed.status).toBe(503);
		expect(closed.body.reasons).toEqual(["the lease is over: the database has not answered a heartbeat in time"]);
		// From now on, every answer is 503 until Postgres is back.
		const refused = await Promise.all(Array.from({ length: 5 }, (_, at) => ask(key, at)));
		expect(refused.map((one) => [one.status, one.code])).toEqual(Array(5).fill([503, "service_unavailable"]));
		await waitFor(() => nowMs() - goneAtMs > LEASE_TTL_MS * 1.1, "the lease to be over for good", 3 * LEASE_TTL_MS);

		await postgres.start();
		await waitFor(async () => (await ask(key)).status === 200, "the instance to admit again", 15_000);
		const during = await asking.stop();
		expect((await readiness()).status).toBe(200);
		const codes = new Set(during.filter((one) => !one.complete).map((one) => `${one.status} ${one.code}`));
		expect([...codes]).toEqual(["503 service_unavailable"]);
		const [{ charged }, paid] = [await rowsOf(account), chargeOf([...before, ...during])];
		expect(charged).toBeLessThanOrEqual(paid + chargeOf([await ask(key)]) * 50);
		await waitFor(async () => (await rowsOf(account)).charged >= paid, "all usage to be in Postgres");
	}, 60_000);
});
