import { describe, expect, test } from "bun:test";
import { confirmTopUp, createTopUp, getTopUp, listTopUps, rejectTopUp } from "../../src/billing/top-ups.ts";
import { readControlAfter } from "../../src/cluster/control-log.ts";
import { createAccount, findAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { NANO_PER_USD, nanoUsd } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";

const database = await withDatabase();

let made = 0;
async function newAccount(): Promise<string> {
	made += 1;
	return (await createAccount(database.statements, { email: `payer${made}@example.com`, vouched: true })).id;
}
const usd = (dollars: number) => nanoUsd(dollars * NANO_PER_USD);
const codeOf = (work: Promise<unknown>) =>
	work.then(
		() => "none",
		(error) => error.code as string,
	);
const topUp = (accountId: string, dollars: number, reference: string) =>
	createTopUp(database.statements, { accountId, amountNanoUsd: usd(dollars), method: "transfer", reference });

describe("a top-up", () => {
	test("gives credit and the right to use the service only once it is confirmed", async () => {
		const accountId = await newAccount();
		const { id, state } = await topUp(accountId, 150, "ref-1");
		expect(state).toBe("pending");
		expect(await accountBalance(database.statements, accountId)).toMatchObject({ balance: 0, available: 0 });
		expect((await findAccount(database.statements, accountId))?.toppedUp).toBe(false);

		const { seq } = await confirmTopUp(database.statements, id, "cli");
		expect(await accountBalance(database.statements, accountId)).toEqual({
			balance: usd(150),
			held: usd(0),
			available: usd(150),
			spent: usd(0),
		});
		expect((await findAccount(database.statements, accountId))?.toppedUp).toBe(true);
		expect(await getTopUp(database.statements, id)).toMatchObject({ state: "confirmed", decidedBy: "cli" });
		const entries = (await readControlAfter(database.statements, 0)).filter((entry) => entry.subject === accountId);
		expect(entries.map(({ kind, payload }) => ({ kind, payload }))).toEqual([
			{ kind: "budget", payload: { lowered: false } },
			{
				kind: "account",
				payload: {
					...{ state: "active", toppedUp: true, signedIn: true, timeZone: "UTC" },
					...{ tags: [], tokensPerMinute: null, agreements: [] },
				},
			},
		]);
		expect(entries.at(-1)?.seq).toBe(seq as number);
	});

	test("is booked once under concurrent confirmations", async () => {
		const accountId = await newAccount();
		const { id } = await topUp(accountId, 100, "ref-race");
		const results = await Promise.all(
			Array.from({ length: 12 }, (_, i) => confirmTopUp(database.statements, id, `actor${i}`)),
		);
		expect(results.every((result) => result.state === "confirmed")).toBe(true);
		expect(results.filter((result) => result.seq !== null).length).toBe(1);
		const booked =
			await database.sql`select amount_nano_usd, source_ref from ledger_entry where account_id = ${accountId}`;
		expect([...booked]).toEqual([{ amount_nano_usd: "100000000000", source_ref: `topup:${id}` }]);
		expect((await accountBalance(database.statements, accountId)).balance).toBe(usd(100));
	});

	test("ends as either confirmed or rejected if two operators do both at once", async () => {
		for (let round = 0; round < 10; round++) {
			const accountId = await newAccount();
			const { id } = await topUp(accountId, 100, `ref-either-${round}`);
			const [confirmed, rejected] = await Promise.all([
				codeOf(confirmTopUp(database.statements, id, "a")),
				codeOf(rejectTopUp(database.statements, id, "b")),
			]);
			expect([confirmed, rejected].toSorted()).toEqual(["conflict", "none"]);
			expect((await accountBalance(database.statements, accountId)).balance).toBe(
				confirmed === "none" ? usd(100) : usd(0),
			);
		}
	});

	test("is credited even if other top-ups of its account are confirmed concurrently", async () => {
		const accountId = await newAccount();
		const ids = await Promise.all(Array.from({ length: 10 }, (_, i) => topUp(accountId, 100 + i, `ref-many-${i}`)));
		await Promise.all(ids.map(({ id }) => confirmTopUp(database.statements, id, "cli")));
		expect((await accountBalance(database.statements, accountId)).balance).toBe(usd(1045));
	});

	test("is refused for an invalid amount, a used reference or an unknown account", async () => {
		const accountId = await newAccount();
		const tooLittle = {
			accountId,
			amountNanoUsd: nanoUsd(usd(100) - 1),
			method: "transfer",
			reference: "ref-small",
		} as const;
		expect(await codeOf(createTopUp(database.statements, tooLittle))).toBe("invalid_request");
		expect(await codeOf(topUp(accountId, 1_000_001, "ref-large"))).toBe("invalid_request");
		expect(await codeOf(topUp(accountId, 100, ""))).toBe("invalid_request");
		expect(await codeOf(topUp("acc_none", 100, "ref-nobody"))).toBe("not_found");
		expect(await codeOf(topUp(accountId, 100, "ref-twice"))).toBe("none");
		expect(await codeOf(topUp(await newAccount(), 100, "ref-twice"))).toBe("conflict");
		expect(await codeOf(confirmTopUp(database.statements, "top_none", "cli"))).toBe("not_found");
		expect(await codeOf(rejectTopUp(database.statements, "top_none", "cli"))).toBe("not_found");
	});

	test("stays pending if its credit would make the balance too large to count", async () => {
		const accountId = await newAccount();
		for (let i = 0; i < 9; i++)
			await confirmTopUp(database.statements, (await topUp(accountId, 1_000_000, `ref-big-${i}`)).id, "cli");
		const { id } = await topUp(accountId, 8_000, "ref-over");
		expect(await codeOf(confirmTopUp(database.statements, id, "cli"))).toBe("conflict");
		expect((await getTopUp(database.statements, id)).state).toBe("pending");
		expect((await accountBalance(database.statements, accountId)).balance).toBe(usd(9_000_000));
	});

	test("that was rejected can be rejected again, but never confirmed", async () => {
		const accountId = await newAccount();
		const { id } = await topUp(accountId, 100, "ref-rejected");
		expect((await rejectTopUp(database.statements, id, "cli")).state).toBe("rejected");
		expect((await rejectTopUp(database.statements, id, "cli")).state).toBe("rejected");
		expect(await codeOf(confirmTopUp(database.statements, id, "cli"))).toBe("conflict");
		expect((await findAccount(database.statements, accountId))?.toppedUp).toBe(false);
	});

	test("is listed by state and account in pages", async () => {
		const accountId = await newAccount();
		const ids: string[] = [];
		for (let i = 0; i < 3; i++) ids.push((await topUp(accountId, 100, `ref-list-${i}`)).id);
		await confirmTopUp(database.statements, ids[1] as string, "cli");
		const pending = await listTopUps(database.statements, { accountId, state: "pending" });
		expect(pending.items.map((item) => item.id)).toEqual([ids[2] as string, ids[0] as string]);
		const page = await listTopUps(database.statements, { accountId }, { limit: 2 });
		expect(page.next).toBe(ids[1] as string);
		expect(
			(await listTopUps(database.statements, { accountId }, { limit: 2, after: page.next })).items.map(
				(item) => item.id,
			),
		).toEqual([ids[0] as string]);
	});
});

describe("an account's balance", () => {
	/**
	 * Creates an account with USD 100 and a key. An instance holds USD 10 of each: it has spent 3 and reserved 2 for a
	 * running request.
	 */
	async function withLease(state: string, leaseSeconds: number) {
		const accountId = await newAccount();
		await confirmTopUp(database.statements, (await topUp(accountId, 100, `ref-lease-${accountId}`)).id, "cli");
		const maker = { statements: database.statements, digest: createDigest("p"), serviceName: "service" };
		const { id: keyId } = await createKey(maker, accountId, { name: "k", capNanoUsd: usd(20) });
		const instance = `i-${accountId}`;
		const { sql } = database;
		await sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values (${instance}, 1, 1, ${state}, 30000, now() + make_interval(secs => ${leaseSeconds}))`;
		const leaseState = state === "left" ? "closed" : "open";
		for (const budget of [accountId, keyId]) {
			await sql`insert into lease values (${budget}, ${instance}, 1, ${usd(12)}, ${usd(2)}, ${usd(3)}, ${leaseState})`;
		}
		await sql`insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
			values (${Bun.randomUUIDv7()}, ${accountId}, ${keyId}, ${instance}, 1, 'm', ${usd(2)}, now())`;
		return { accountId, keyId };
	}

	test("counts credit as held only for running requests of a live instance", async () => {
		const { accountId, keyId } = await withLease("live", 30);
		expect(await accountBalance(database.statements, accountId)).toEqual({
			balance: usd(97),
			held: usd(2),
			available: usd(95),
			spent: usd(3),
		});
		expect(await keyBalance(database.statements, keyId)).toEqual({
			cap: usd(20),
			held: usd(2),
			spent: usd(3),
			capSpent: usd(3),
			remaining: usd(15),
		});
	});

	test("counts the unreturned credit of a dead or expired instance as held, once", async () => {
		for (const [state, seconds] of [
			["dead", 30],
			["live", -1],
		] as const) {
			const { accountId, keyId } = await withLease(state, seconds);
			expect(await accountBalance(database.statements, accountId)).toEqual({
				balance: usd(97),
				held: usd(7),
				available: usd(90),
				spent: usd(3),
			});
			expect(await keyBalance(database.statements, keyId)).toMatchObject({ held: usd(7), remaining: usd(10) });
		}
	});

	test("counts nothing as held once an instance has returned all credit", async () => {
		expect(await accountBalance(database.statements, (await withLease("left", -1)).accountId)).toEqual({
			balance: usd(97),
			held: usd(0),
			available: usd(97),
			spent: usd(3),
		});
	});

	test("is not found for an unknown account", async () => {
		expect(await codeOf(accountBalance(database.statements, "acc_none"))).toBe("not_found");
		expect(await codeOf(keyBalance(database.statements, "key_none"))).toBe("not_found");
	});
});
