import { describe, expect, test } from "bun:test";
import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { moveToAnotherServer } from "../support/another-server.ts";
import { postJson } from "../support/chat.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import { bodyOf, type ChatRequest, type SentRequest, sendChat } from "./chat-client.ts";
import { type FleetMember, NANO_USD_A_PROMPT_TOKEN, NANO_USD_AN_OUTPUT_TOKEN, withFleet } from "./fleet.ts";
import { costOf } from "./verdict.ts";

/** All requests are equal, so that their reservation and cost are known. */
const ASK: ChatRequest = { words: 10, stream: false, maxTokens: 60 };
/** Cost of a request: the prompt has ten words and three tokens of overhead, the answer "echo:" and the ten words. */
const CHARGE = costOf(13, 11);
const CAP_REQUESTS = LONG ? 40 : 6;
/** Concurrent requests: one per instance in the short run, several in the long run. */
const AT_ONCE = LONG ? 9 : 3;

const { fleet } = await withFleet();

const requiredOf = (text: string) => Math.round(Number(/may cost up to USD ([\d.]+)/.exec(text)?.[1]) * 1e9);

/** Reads from a 402 how much a request reserves. */
async function needOf(): Promise<number> {
	const key = await fleet.key(await fleet.account(1));
	const response = await postJson(`${fleet.members[0]?.url}/v1/chat/completions`, key.secret, bodyOf(ASK));
	const body = (await response.json()) as { error: { message: string } };
	expect(response.status).toBe(402);
	return requiredOf(body.error.message);
}

function askOf(key: { id: string; secret: string }, member: number): Promise<SentRequest> {
	return sendChat(fleet.members[member] as FleetMember, key, ASK);
}

/** Sends requests one by one, each to a random instance, until the first refusal. */
async function spendDown(key: { id: string; secret: string }, seed: number) {
	const random = createRandom(seed);
	for (let served = 0; ; served++) {
		const last = await askOf(key, Math.floor(random.between(0, 3)));
		if (last.status !== 200) return { served, last };
		if (served > 5_000) throw new Error("credit does not end");
	}
}

const untilSpent = (account: string, served: number) =>
	waitFor(
		async () => (await accountBalance(fleet.statements, account)).spent === served * CHARGE,
		"all usage to be known",
	);

describe("three instances that share one account's credit", () => {
	test("serve requests until less credit is left than one request reserves", async () => {
		const need = await needOf();
		expect(need).toBeGreaterThan(CHARGE);
		for (const [seed, credit] of [need, 12 * CHARGE + 3, ...(LONG ? [97 * CHARGE + 3] : [])].entries()) {
			const account = await fleet.account(Math.max(need, credit));
			const key = await fleet.key(account);
			const { served, last } = await spendDown(key, seed + 1);
			expect([last.status, last.code]).toEqual([402, "insufficient_quota"]);
			// A settled request releases what it did not use, so requests are served until less than one reservation is left.
			const affordable = Math.floor((Math.max(need, credit) - need) / CHARGE) + 1;
			expect(served).toBe(affordable);
			await untilSpent(account, served);
			const balance = await accountBalance(fleet.statements, account);
			expect(balance.available).toBeLessThan(need);
			expect(balance.available + balance.spent).toBe(Math.max(need, credit) as typeof balance.available);
		}
	}, 60_000);

	test("serve a key's requests until less of its cap is left than one request reserves", async () => {
		const need = await needOf();
		const cap = need + CAP_REQUESTS * CHARGE;
		const key = await fleet.key(await fleet.account(), { capNanoUsd: nanoUsd(cap) });
		const { served, last } = await spendDown(key, 7);
		expect([last.status, last.code]).toEqual([402, "key_cap_exceeded"]);
		expect(served).toBe(CAP_REQUESTS + 1);
		await waitFor(
			async () => (await keyBalance(fleet.statements, key.id)).spent === served * CHARGE,
			"all usage to be known",
		);
	}, 30_000);

	test("serve requests from credit that is idle on other instances, and never overspend", async () => {
		const need = await needOf();
		const credit = need * 3 * AT_ONCE;
		const account = await fleet.account(credit);
		const key = await fleet.key(account);
		// Sends one request to each instance, so that each has a slice.
		for (let member = 0; member < 3; member++) expect((await askOf(key, member)).status).toBe(200);
		let served = 3;
		for (let round = 0; ; round++) {
			const answers = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => askOf(key, (at + round) % 3)));
			served += answers.filter((one) => one.status === 200).length;
			const refused = answers.filter((one) => one.status !== 200);
			for (const one of refused) expect([one.status, one.code]).toEqual([402, "insufficient_quota"]);
			// Concurrent reservations may exceed the credit, so a round must be served completely only if it always fits.
			const left = credit - served * CHARGE;
			if (left >= need * 2 * AT_ONCE) expect(refused).toEqual([]);
			if (answers.every((one) => one.status !== 200)) break;
		}
		expect(credit - served * CHARGE).toBeLessThan(need);
		expect(served * CHARGE).toBeLessThanOrEqual(credit);
		await untilSpent(account, served);
		expect((await reconcile(fleet.statements)).checks.filter((check) => !check.ok)).toEqual([]);
	}, 60_000);

	/** Creates an account with a key. All its credit is at one instance and suffices for one more request. */
	async function allAt(member: FleetMember): Promise<{ id: string; secret: string }> {
		const key = await fleet.key(await fleet.account((await needOf()) + CHARGE));
		// Waits until all instances know the lowered limit: one that learned of it later would return its credit.
		const behind = () => fleet.sql`
			select 1 from instance_now where state = 'live' and applied_seq < (select max(seq) from control_log)`;
		await waitFor(async () => (await behind()).length === 0, "every instance to know the account's limit");
		expect(await askOf(key, member.index)).toMatchObject({ status: 200 });
		return key;
	}

	test("serve a request from the idle credit of an instance that is stopping", async () => {
		const leaver = fleet.members[1] as FleetMember;
		const key = await allAt(leaver);
		const release = leaver.proxy.hold("to server", / ledger$/);
		const stopped = leaver.stop("SIGINT");
		const isServing = () => fetch(`${leaver.url}/healthz`).then(Boolean, () => false);
		await waitFor(async () => !(await isServing()), "its door to be closed");
		expect(await askOf(key, 0)).toMatchObject({ status: 503, code: "service_unavailable" });
		release();
		expect(await stopped).toBe(0);
		expect((await askOf(key, 0)).status).toBe(200);
	}, 30_000);

	test("serve a request from idle credit of an instance whose database server changed", async () => {
		const mover = fleet.members[2] as FleetMember;
		const key = await allAt(mover);
		const release = mover.proxy.hold("to server", / ledger$/);
		await fleet.sql.begin(async (sql) => {
			// The lock delays the join of the instance's next epoch, so the credit of its ended epoch stays where it is.
			await sql`select pg_advisory_xact_lock(hashtextextended('instance i2', 0))`;
			await moveToAnotherServer(fleet.sql);
			const anew = () => fleet.sql`select 1 from instance_now where state = 'live' and id = 'i0' and epoch = 2`;
			await waitFor(async () => (await anew()).length === 1, "the one that is asked to have begun anew");
			await waitFor(async () => !(await fetch(`${mover.url}/readyz`)).ok, "the other's epoch to be over");
			const answer = askOf(key, 0);
			const asked = () => fleet.sql`select 1 from recall where instance_id = 'i0' and epoch = 2`;
			await Promise.race([answer, waitFor(async () => (await asked()).length > 0, "the others to be asked")]);
			release();
			expect(await answer).toMatchObject({ status: 200 });
		});
	}, 30_000);
});

// The figures above are correct only for these prices.
expect([NANO_USD_A_PROMPT_TOKEN, NANO_USD_AN_OUTPUT_TOKEN]).toEqual([1_000, 2_000]);
