import { describe, expect, test } from "bun:test";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { runCli } from "../cli/run-cli.ts";
import { LONG } from "../support/long-form.ts";
import { nowMs, waitFor } from "../support/wait.ts";
import { keepSending, type SentRequest, sendChat, uuidOf } from "./chat-client.ts";
import { type FleetMember, GRACE_MS, LEASE_TTL_MS, withFleet } from "./fleet.ts";

/** Number of instances: a live and a paused one, and in the long run a third, which costs another start. */
const INSTANCES = LONG ? 3 : 2;
/** Number of revocations: at least one per instance. */
const REVOKES = LONG ? 12 : INSTANCES;
/** Number of users: two per instance, one of each kind. */
const USERS = 2 * INSTANCES;
/**
 * Milliseconds from a revocation's deadline to its return: polls of at most 100 ms, two statements, a busy machine.
 * Less than a second lease.
 */
const MARGIN_MS = 4_000;
/**
 * Longest time in milliseconds until a notified instance refuses. An instance that misses the notification learns of
 * the revocation with its next heartbeat, up to a second later.
 */
const TOLD_MS_MAX = 600;
/** Tolerance in milliseconds: times of admission are recorded in whole milliseconds. */
const RECORD_MS = 1;

const { fleet, upstream } = await withFleet({ gapMsMax: 2, instances: INSTANCES });
const ASK = { words: 3, stream: false, maxTokens: 20 };

/**
 * Milliseconds between a user's requests: over a hundred a second run at any moment of a revocation, on a shared
 * machine.
 */
const SERVED_REST_MS = LONG ? 15 : 40;

/** Sends requests with the key to all instances until stopped, with a pause after each refusal. */
function keepAsking(key: { id: string; secret: string }, againMs = 5) {
	const users = Array.from({ length: USERS }, (_, at) => () => {
		const member = fleet.members[at % fleet.members.length] as FleetMember;
		return sendChat(member, key, { ...ASK, stream: at < INSTANCES });
	});
	const sending = keepSending(users, ({ status }) => (status === 200 ? SERVED_REST_MS : againMs));
	const { sent } = sending;
	return {
		...sending,
		served: () =>
			waitFor(
				() => fleet.members.every(({ index }) => sent.some((one) => one.member === index && one.status === 200)),
				"every instance to serve the key",
			),
	};
}

async function arrivalsAfter(sinceMs: number, sent: readonly SentRequest[]) {
	const own = new Set(sent.map((one) => one.uuid));
	return (await upstream.report()).filter(
		(arrival) => arrival.arrivedAtMs > sinceMs && own.has(uuidOf(arrival.requestId)),
	);
}

/** Returns just after the instance renewed its lease, when its next heartbeat is furthest away. */
async function justRenewed(id: string): Promise<void> {
	const beat = async () =>
		(await fleet.sql`select beat from instance_now where id = ${id} and state = 'live'`)[0]?.beat;
	const before = await beat();
	await waitFor(async () => (await beat()) !== before, `the heartbeat of ${id}`);
}

/** Time of admission that the gateway recorded; waits until the record is in Postgres. */
async function admittedAt(uuid: string): Promise<number> {
	let at: number | undefined;
	await waitFor(async () => {
		const [row] =
			await fleet.sql`select extract(epoch from admitted_at) * 1000 as at from usage_event where request_id = ${uuid}`;
		at = row === undefined ? undefined : Number(row.at);
		return at !== undefined;
	}, `the usage of ${uuid}`);
	return at as number;
}

/** Expects that no request was admitted after the revocation returned. */
async function expectRefusedAfter(ms: number, sent: readonly SentRequest[], others: readonly SentRequest[] = []) {
	expect(sent.filter((one) => one.sentAtMs > ms && one.status === 200)).toEqual([]);
	for (const { requestId } of await arrivalsAfter(ms, [...sent, ...others]))
		expect(await admittedAt(uuidOf(requestId) ?? "")).toBeLessThanOrEqual(ms + RECORD_MS);
}

describe("a key revoked on several instances under load", () => {
	test(`is refused before the next heartbeat after each of ${REVOKES} revocations`, async () => {
		const account = await fleet.account();
		const soonest = fleet.members.map(() => Number.POSITIVE_INFINITY);
		let before = 0;
		let matched = 0;
		// Tries slow instances again, because other tests may stall the machine.
		const late = () => soonest.findIndex((tookMs) => tookMs >= TOLD_MS_MAX);
		for (let at = 0; at < REVOKES || (at < 3 * REVOKES && late() >= 0); at++) {
			const key = await fleet.key(account);
			const asking = keepAsking(key);
			await asking.served();
			const renewed = at < REVOKES ? at % fleet.members.length : late();
			await justRenewed(`i${renewed}`);
			const startedMs = nowMs();
			const entry = await revokeKey(fleet.statements, key);
			const { effective } = await fleet.applied(entry);
			const returnedMs = nowMs();
			soonest[renewed] = Math.min(soonest[renewed] as number, returnedMs - startedMs);
			expect(effective).toBe(true);
			const refused = await Promise.all(fleet.members.map((member) => sendChat(member, key, ASK)));
			expect(refused.map((one) => one.code)).toEqual(Array(INSTANCES).fill("api_key_revoked"));
			await asking.stop();
			before += asking.sent.filter((one) => one.status === 200).length;
			matched += (await arrivalsAfter(0, asking.sent)).length;
			await expectRefusedAfter(returnedMs, asking.sent);
		}
		expect(before).toBeGreaterThan(REVOKES);
		expect(matched).toBeGreaterThanOrEqual(before);
		// On an idle machine, each revocation takes a few milliseconds.
		for (const [index, tookMs] of soonest.entries())
			expect([index, tookMs, tookMs < TOLD_MS_MAX]).toEqual([index, tookMs, true]);
	}, 120_000);

	// Only in the long run: `cluster/taking-rights.test.ts` covers the wait itself.
	test.if(LONG)(
		"is refused everywhere once the command `key revoke` returns",
		async () => {
			const key = await fleet.key(await fleet.account());
			const asking = keepAsking(key);
			await asking.served();
			const result = await runCli(["key", "revoke", key.id, "--json"], fleet.env);
			const returnedMs = nowMs();
			expect(result.json<{ effective: boolean }>().effective).toBe(true);
			await sendChat(fleet.members[0] as FleetMember, key, ASK);
			await asking.stop();
			expect(asking.sent.filter((one) => one.sentAtMs > returnedMs && one.status === 200)).toEqual([]);
		},
		30_000,
	);

	test("is refused at the latest when the lease of a paused instance ends", async () => {
		const key = await fleet.key(await fleet.account());
		const asking = keepAsking(key, 25);
		await asking.served();
		const paused = fleet.members[1] as FleetMember;
		paused.process()?.kill("SIGSTOP");
		const startedMs = nowMs();
		const entry = await revokeKey(fleet.statements, key);
		const { effective } = await fleet.applied(entry);
		const returnedMs = nowMs();
		const tookMs = returnedMs - startedMs;
		expect(effective).toBe(true);
		expect(tookMs).toBeLessThan(LEASE_TTL_MS + GRACE_MS + MARGIN_MS);
		// Sends requests that wait in the paused instance's sockets, which must refuse them when it reads them.
		const waiting = Array.from({ length: 8 }, () => sendChat(paused, key, ASK));
		paused.process()?.kill("SIGCONT");
		const answers = await Promise.all(waiting);
		// A connection that was idle for too long may be closed without an answer (status 0).
		for (const { code } of answers.filter(({ status }) => status !== 0))
			expect(["api_key_revoked", "service_unavailable"]).toContain(code as string);
		await asking.stop();
		await expectRefusedAfter(returnedMs, asking.sent, answers);
		// The instance returns with a new epoch, which has applied the revocation.
		const other = await fleet.key(await fleet.account());
		await waitFor(async () => (await sendChat(paused, other, ASK)).status === 200, "it to serve again", 30_000);
		expect((await sendChat(paused, key, ASK)).code).toBe("api_key_revoked");
	}, 60_000);
});
