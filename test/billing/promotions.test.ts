/** Tests of promotional credit: used before paid credit, taken back exactly after its last day, opens no access. */
import { expect, test } from "bun:test";
import { bookAdjustment, checkAdjustment, takeBackEndedPromotions } from "../../src/billing/adjustments.ts";
import { createAccount, findAccount } from "../../src/keys/account-admin.ts";
import { NANO_PER_USD, nanoUsd } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { payIn } from "../support/paid-account.ts";
import { createRandom, type Random } from "../support/random.ts";

const db = await withDatabase();
const usd = (amount: number) => nanoUsd(amount * NANO_PER_USD);
const DAY_MS = 24 * 3_600_000;
const day = (offset: number) => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);

async function account(): Promise<string> {
	return (await createAccount(db.statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true })).id;
}

async function give(accountId: string, amount: number, lastDay: string | null, from: number | null = null) {
	const asked = { accountId, amount: nanoUsd(amount), reason: "welcome", promotion: { lastDay } };
	const by = { idempotencyKey: crypto.randomUUID(), operatorId: "usr_promotions", ip: null };
	return bookAdjustment(db.tx, { ...asked, ...by }, from === null ? null : nanoUsd(from));
}

/** Moves credit between the account's budget and its only lease, and spends from the lease. */
async function move(accountId: string, { hold = 0, spend = 0 }: { hold?: number; spend?: number }): Promise<void> {
	await db.sql`insert into lease (budget_id, instance_id, epoch, granted_nano_usd) values (${accountId}, 'i', 1, 0) on conflict do nothing`;
	await db.sql`update lease set granted_nano_usd = granted_nano_usd + ${Math.max(hold, 0)}, returned_nano_usd = returned_nano_usd + ${Math.max(-hold, 0)},
		settled_nano_usd = settled_nano_usd + ${spend} where budget_id = ${accountId}`;
	await db.sql`update budget set drawn_nano_usd = drawn_nano_usd + ${hold} where id = ${accountId}`;
}

interface Grant {
	left: number;
	readonly lastDay: string | null;
}

/** Applies random steps to an account and to a model, a list of grants that are spent in order. Compares both. */
async function play(random: Random): Promise<void> {
	const accountId = await account();
	const grants: Grant[] = [];
	const seen: { spent: number; used: number }[] = [];
	let [credit, held, spent, used, given, taken] = [0, 0, 0, 0, 0, 0];
	const order = ({ lastDay }: Grant) => lastDay ?? "9999";
	for (let step = 0; step < 30; step++) {
		const chosen = random.int(0, 5);
		if (chosen === 0) {
			const amount = random.int(1, 1_000);
			await db.sql`select ledger_book(${crypto.randomUUID()}, ${accountId}, 'top_up', ${amount}, ${crypto.randomUUID()}, 'test', '', false)`;
			credit += amount;
		} else if (chosen === 1) {
			const grant = { left: random.int(1, 500), lastDay: random.chance(0.3) ? null : day(random.int(-3, 2)) };
			await give(accountId, grant.left, grant.lastDay);
			grants.push(grant);
			credit += grant.left;
			given += grant.left;
		} else if (chosen === 2) {
			const hold = random.int(0, credit - spent - held);
			await move(accountId, { hold });
			held += hold;
		} else if (chosen === 3 && held > 0) {
			const spend = random.int(1, held);
			const release = random.int(0, held - spend);
			await move(accountId, { hold: -release, spend });
			held -= spend + release;
			spent += spend;
			let rest = spend;
			for (const grant of grants.toSorted((a, b) => order(a).localeCompare(order(b)))) {
				const part = Math.min(rest, grant.left);
				grant.left -= part;
				rest -= part;
				used += part;
			}
		} else if (chosen === 4) {
			await db.sql`delete from control_log where subject = ${accountId}`;
			await takeBackEndedPromotions(db.statements);
			let free = credit - spent - held;
			for (const grant of grants) {
				if (grant.lastDay === null || grant.lastDay >= day(0)) continue;
				const part = Math.min(grant.left, free);
				grant.left -= part;
				free -= part;
				credit -= part;
				taken += part;
			}
		}
		if (chosen === 5) {
			const amount = random.int(1, 300);
			const grant = grants.findLast(({ left }) => left >= amount);
			const taking = give(accountId, -amount, null).catch(({ code }) => code);
			if (grant === undefined || credit - spent - held < amount) expect(await taking).toBe("conflict");
			else {
				expect(await taking).toMatchObject({ state: "booked" });
				grant.left -= amount;
				credit -= amount;
				taken += amount;
			}
		}
		seen.push({ spent, used });
		const [row] = await db.sql`
			select (select coalesce(sum(l.left_nano_usd), 0) from promotion_left(${accountId}, budget_spent(${accountId})) l)::int as left,
				coalesce(sum(e.amount_nano_usd), 0)::int as booked, promotion_used(${accountId}, budget_spent(${accountId}))::int as used,
				(select limit_nano_usd - drawn_nano_usd from budget where id = ${accountId})::int as free
			from ledger_entry e where e.account_id = ${accountId} and e.kind = 'promotion'`;
		expect([step, row]).toEqual([
			step,
			{ left: given - taken - used, booked: given - taken, used, free: credit - spent - held },
		] as never);
	}
	// What an earlier spending had used never changes, so that the figures of a closed month do not change.
	for (const { spent, used } of seen)
		expect(await db.sql`select promotion_used(${accountId}, ${spent})::int as used`).toEqual([{ used }] as never);
}

test("promotional credit matches a simple model after random grants and charges", async () => {
	for (let seed = 0; seed < (LONG ? 200 : 12); seed++) await play(createRandom(seed));
}, 120_000);

test("promotional credit does not count as the first top-up", async () => {
	const accountId = await account();
	await give(accountId, usd(500), null);
	expect((await findAccount(db.statements, accountId))?.toppedUp).toBe(false);
	await payIn(db.statements, accountId);
	expect((await findAccount(db.statements, accountId))?.toppedUp).toBe(true);
});

test("ended promotional credit is taken from free credit first, then as credit returns", async () => {
	const accountId = await account();
	await give(accountId, 100, day(-1));
	await move(accountId, { hold: 40 });
	const books = async () => {
		await takeBackEndedPromotions(db.statements);
		const [row] = await db.sql`
			select limit_nano_usd::int as credit, (limit_nano_usd - drawn_nano_usd)::int as free,
				(select count(*)::int from control_log where subject = ${accountId} and payload->>'lowered' = 'true') as lowered
			from budget where id = ${accountId}`;
		return [row?.credit, row?.free, row?.lowered];
	};
	expect(await books()).toEqual([40, 0, 1]);
	expect(await books()).toEqual([40, 0, 2]);
	await move(accountId, { hold: -15, spend: 25 });
	expect(await books()).toEqual([25, 0, 3]);
	expect(await books()).toEqual([25, 0, 3]);
	expect(
		await db.sql`select amount_nano_usd::int as amount, first_by, reason, last_day from credit_adjustment where account_id = ${accountId} order by id`,
	).toMatchObject([
		{ amount: 100 },
		{ amount: -60, first_by: "tollgate", reason: "welcome" },
		{ amount: -15 },
	] as never);
});

test("ended promotional credit causes no recall if no instance holds credit", async () => {
	const accountId = await account();
	await give(accountId, 100, day(-1));
	await move(accountId, {});
	await db.sql`select ledger_book('led_lost', ${accountId}, 'dispute', -100, 'lost', 'test', '', true)`;
	await db.sql`delete from control_log where subject = ${accountId}`;
	await takeBackEndedPromotions(db.statements);
	expect(await db.sql`select 1 from control_log where subject = ${accountId}`).toEqual([] as never);
});

test("an ordinary credit adjustment removes paid credit only", async () => {
	const accountId = await account();
	await payIn(db.statements, accountId);
	await give(accountId, 100, null);
	const remove = (amount: number) => {
		const by = { idempotencyKey: crypto.randomUUID(), operatorId: "usr_promotions", ip: null };
		return bookAdjustment(db.tx, { accountId, amount: nanoUsd(-amount), reason: "closed", ...by }, null);
	};
	const [row] = await db.sql`select limit_nano_usd::float8 as credit from budget where id = ${accountId}`;
	await expect(remove(row?.credit - 99)).rejects.toMatchObject({ code: "conflict" });
	expect(await remove(row?.credit - 100)).toMatchObject({ state: "booked" });
});

test("two consoles take expired promotional credit back only once", async () => {
	const accountId = await account();
	await give(accountId, 100, day(-1));
	await Promise.all(Array.from({ length: 8 }, () => takeBackEndedPromotions(db.statements)));
	expect(await db.sql`select limit_nano_usd::int as credit from budget where id = ${accountId}`).toEqual([
		{ credit: 0 },
	] as never);
});

test("promotional credit above a threshold waits for a second operator", async () => {
	const accountId = await account();
	const { state } = await give(accountId, 60, null, 60);
	expect([state, await db.sql`select 1 from promotion where account_id = ${accountId}`]).toEqual([
		"pending",
		[] as never,
	]);
});

test("a repeated idempotency key gives promotional credit once, with equal terms only", async () => {
	const accountId = await account();
	const asked = {
		accountId,
		amount: nanoUsd(5),
		reason: "again",
		idempotencyKey: crypto.randomUUID(),
		operatorId: "usr_again",
		ip: null,
	};
	const made = await bookAdjustment(db.tx, { ...asked, promotion: { lastDay: day(3) } }, null);
	expect((await bookAdjustment(db.tx, { ...asked, promotion: { lastDay: day(3) } }, null)).id).toBe(made.id);
	for (const promotion of [undefined, { lastDay: day(4) }])
		await expect(bookAdjustment(db.tx, { ...asked, promotion }, null)).rejects.toMatchObject({ code: "conflict" });
});

test("promotional credit of zero or an invalid last day is refused, naming the field", () => {
	const params = { amount: "usd", lastDay: "lastDay" };
	const now = Date.parse("2027-01-31T23:59:59Z");
	for (const [amount, lastDay, param] of [
		[-1, null, null],
		[-1, "2027-02-01", "lastDay"],
		[0, null, "usd"],
		[1, "2027-01-30", "lastDay"],
		[1, "2027-02-30", "lastDay"],
		[1, "2027-02-28T00:00:00Z", "lastDay"],
		[1, "2027-01-31", null],
		[1, null, null],
	] as const) {
		const check = () => checkAdjustment({ amount: nanoUsd(amount), promotion: { lastDay } }, params, now);
		if (param === null) check();
		else expect(check).toThrow(expect.objectContaining({ code: "invalid_request", param }));
	}
});
