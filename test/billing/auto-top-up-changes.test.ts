/** Tests of automatic top-ups whose owner must confirm the payment, or changes the settings during it. */
import { expect, test } from "bun:test";
import { saveAutoTopUp, switchOffAutoTopUp } from "../../src/billing/auto-top-ups.ts";
import { waitFor } from "../support/wait.ts";
import { zoneByDay } from "../support/zone-by-day.ts";
import { type Payer, usd, withAutomatic } from "./automatic.ts";

const { attempts, balance, cards, charges, db, pass, payer, setting, spend, stripe, tell, turn } =
	await withAutomatic();

test("an automatic payment that needs confirmation is paid once on Stripe's page", async () => {
	for (const nature of ["authentication", "action"] as const) {
		const ann = await payer(nature);
		await spend(ann, 90);
		await pass(2);
		const [attempt] = await attempts(ann);
		expect(attempt).toMatchObject({ state: "needs_authentication", reason: "authentication", top_up_state: "pending" });
		expect(await setting(ann)).toMatchObject({ state: "needs_owner", tell: "authentication" });
		expect(stripe.cards.intents.find(({ id }) => id === attempt?.payment_id)?.status).toBe("canceled");
		const back = "http://service/credit?topup=";
		const url = await cards.finish(ann.accountId, back);
		expect(await cards.finish(ann.accountId, back)).toBe(url);
		const page = stripe.lastPage();
		expect(url).toEndWith(page.id);
		expect(Object.fromEntries(page.fields)).toMatchObject({
			customer: ann.card.customer,
			"payment_intent_data[setup_future_usage]": "off_session",
			success_url: `${back}${attempt?.top_up_id}&payment=done`,
		});
		await pass(2);
		expect(await attempts(ann)).toHaveLength(1);
		const card = stripe.give(page);
		const session = {
			...{
				id: page.id,
				object: "checkout.session",
				client_reference_id: page.topUpId,
				payment_intent: `pi_${page.id}`,
			},
			...{ payment_status: "paid", status: "complete", amount_total: page.amount, currency: "usd" },
		};
		expect(await tell("checkout.session.completed", session)).toBe(200);
		// The clock does not advance, so only the event can make the job handle the page.
		await cards.collect();
		await turn();
		expect(await balance(ann)).toBe(110);
		expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
		expect(await setting(ann)).toMatchObject({ state: "on", reason: null });
		await spend(ann, 90);
		await pass(2);
		expect(stripe.cards.intents[0]).toMatchObject({ payment_method: card.id, status: "succeeded" });
		expect(await balance(ann)).toBe(120);
	}
});

test("saving, disabling or removing a card closes the page of its open payment", async () => {
	const ann = await payer("authentication");
	await spend(ann, 90);
	await pass(2);
	await cards.finish(ann.accountId, "http://service/credit?topup=");
	const page = stripe.lastPage();
	// The first payment may have succeeded, so no other payment starts before its state is known.
	stripe.paid.add(page.id);
	ann.card.nature = "good";
	await ann.save();
	await pass(2);
	expect(await attempts(ann)).toMatchObject([{ state: "needs_authentication" }]);
	stripe.paid.delete(page.id);
	await pass(3);
	expect(stripe.expired.has(page.id)).toBe(true);
	expect(await attempts(ann)).toMatchObject([{ state: "ended", top_up_state: "rejected" }, { state: "succeeded" }]);
	expect(charges(ann)).toBe(1);
	const offBy = [
		(ben: Payer) => switchOffAutoTopUp(db.statements, ben.accountId),
		(ben: Payer) => cards.saved.remove(ben.accountId),
	];
	for (const off of offBy) {
		const ben = await payer("authentication");
		await spend(ben, 90);
		await pass(2);
		await db.sql`update auto_top_up_attempt set look_at = now() + interval '1 hour' where account_id = ${ben.accountId}`;
		await off(ben);
		await turn();
		expect(await attempts(ben)).toMatchObject([{ state: "ended", top_up_state: "rejected" }]);
		await expect(cards.finish(ben.accountId, "http://service/")).rejects.toThrow("No payment needs confirmation");
	}
});

test("a page that Stripe opens for an abandoned payment is closed", async () => {
	const ann = await payer("authentication");
	await spend(ann, 90);
	await pass(2);
	const opened = stripe.pages.length;
	const customer = `customer=${ann.card.customer}`;
	stripe.slow((request) => (/sessions /.test(request) && request.includes(customer) ? "late" : undefined));
	const opening = Promise.allSettled([cards.finish(ann.accountId, "http://service/credit?topup=")]);
	await waitFor(() => stripe.pages.length > opened, "the page to be made");
	ann.card.nature = "good";
	await ann.save();
	await pass(3);
	expect(await attempts(ann)).toMatchObject([{ state: "ended", top_up_state: "rejected" }, { state: "succeeded" }]);
	stripe.slow();
	expect(await opening).toMatchObject([{ status: "rejected", reason: { code: "conflict" } }]);
	expect([...stripe.expired]).toContain(stripe.pages.at(-1)?.id ?? "");
});

test("a second page that Stripe opens for a payment a day later is closed too", async () => {
	const ann = await payer("authentication");
	await spend(ann, 90);
	await pass(2);
	const back = "http://service/credit?topup=";
	await cards.finish(ann.accountId, back);
	const [first] = stripe.pages.splice(-1);
	await expect(cards.finish(ann.accountId, back)).rejects.toThrow("The payment page is closed");
	const second = stripe.pages.at(-1);
	expect(second?.id).not.toBe(first?.id);
	expect(stripe.expired.has(second?.id ?? "")).toBe(true);
});

test("disabling or removing a card lets the current payment finish and starts no other", async () => {
	for (const removed of [false, true]) {
		const ann = await payer("processing");
		const { customer } = ann.card;
		await spend(ann, 90);
		await pass(1);
		if (removed) await cards.saved.remove(ann.accountId);
		else await switchOffAutoTopUp(db.statements, ann.accountId);
		const [intent] = stripe.cards.intents;
		if (intent === undefined) throw new Error("nothing was sent");
		intent.status = "succeeded";
		intent.amount_received = intent.amount;
		await pass(2);
		expect(await balance(ann)).toBe(110);
		expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
		await spend(ann, 100);
		await pass(2);
		expect(await attempts(ann)).toHaveLength(1);
		if (removed) {
			expect(ann.card.customer).toBeNull();
			expect(await cards.saved.read(ann.accountId)).toBeNull();
			await expect(ann.save()).rejects.toThrow("Save a card first.");
		}
		expect(customer).not.toBeNull();
	}
});

test("the newest card is charged, and removing it ends the automatic top-ups", async () => {
	const ann = await payer();
	const { accountId } = ann;
	const open = async () => {
		await cards.saved.setup(accountId, { email: "ann@example.com", back: "http://service/credit?card=" });
		return stripe.lastPage();
	};
	const cardOf = async () => {
		const [row] = await db.sql`select payment_method_id as card from saved_card where account_id = ${accountId}`;
		return row?.card;
	};
	const [old, present] = [await open(), await open()];
	expect(Object.fromEntries(present.fields)).toMatchObject({ mode: "setup", customer: ann.card.customer });
	await pass(1);
	expect(await cardOf()).toBe(ann.card.id);
	stripe.give(old);
	await db.sql`update card_setup set state = 'open' where id = ${old.id}`;
	await db.sql`update card_setup set look_at = now() where id = ${old.id}`;
	stripe.meanwhile(async () => void (await db.sql`update card_setup set state = 'closed' where id = ${old.id}`));
	await cards.collect();
	stripe.meanwhile();
	expect(await cardOf()).toBe(ann.card.id);
	const given = stripe.give(present);
	await tell("checkout.session.completed", { id: present.id, payment_status: "no_payment_required" });
	await cards.collect();
	expect(await cardOf()).toBe(given.id);
	expect(ann.card.customer).toBeNull();
	expect(await cards.saved.read(accountId)).toMatchObject({
		brand: "visa",
		lastFour: "4242",
		expMonth: 12,
		expYear: 2031,
	});
	await cards.saved.remove(accountId);
	expect(given.customer).toBeNull();
	await expect(cards.saved.remove(accountId)).rejects.toThrow("No card is saved.");
	stripe.give(await open());
	await spend(ann, 90);
	await pass(3);
	expect(await cards.saved.read(accountId)).not.toBeNull();
	expect(await attempts(ann)).toEqual([]);
	await ann.save();
	await pass(2);
	expect(await balance(ann)).toBe(110);
});

test("automatic top-ups stay within the monthly limit and continue the next month", async () => {
	const ann = await payer("good", { most: 250 });
	const zone = zoneByDay();
	await db.sql`update account set time_zone = ${zone} where id = ${ann.accountId}`;
	for (const left of [110, 110]) {
		await spend(ann, (await balance(ann)) - 10);
		await pass(2);
		expect(await balance(ann)).toBe(left);
	}
	await spend(ann, 100);
	await pass(2);
	expect(charges(ann)).toBe(2);
	const [held] = await db.sql`
		select least(now() + interval '1 day',
			(date_trunc('month', now() at time zone ${zone}) + interval '1 month') at time zone ${zone})
			- look_at between interval '0' and interval '5 minutes' as next
		from auto_top_up where account_id = ${ann.accountId}`;
	expect(held?.next).toBe(true);
	// Spends in the last moment of last month and the first of this month, by the account's time zone.
	await db.sql`
		update auto_top_up_attempt set begun_at = date_trunc('month', now(), ${zone}) where account_id = ${ann.accountId}`;
	await db.sql`update auto_top_up set look_at = now() where account_id = ${ann.accountId}`;
	await pass(2);
	expect(charges(ann)).toBe(2);
	await db.sql`
		update auto_top_up_attempt set begun_at = begun_at - interval '1 microsecond',
			month = auto_top_up_month(begun_at - interval '1 microsecond', ${zone}) where account_id = ${ann.accountId}`;
	await db.sql`update auto_top_up set look_at = now() where account_id = ${ann.accountId}`;
	await pass(2);
	expect(charges(ann)).toBe(3);
	expect(await balance(ann)).toBe(110);
});

/**
 * Changes between the fall below the threshold and the charge, and the cents bought afterwards: none, or the new
 * amount.
 */
const CHANGES: Record<string, { run: (ann: Payer) => Promise<unknown>; buysCents: number; state?: string }> = {
	"switched off": { run: ({ accountId }) => switchOffAutoTopUp(db.statements, accountId), buysCents: 0 },
	suspended: {
		run: ({ accountId }) => db.sql`update account set state = 'suspended' where id = ${accountId}`,
		...{ buysCents: 0, state: "on" },
	},
	"another payment is disputed": {
		run: ({ accountId }) => db.sql`select auto_top_up_halt(${accountId}, 'stopped', 'disputed')`,
		...{ buysCents: 0, state: "stopped" },
	},
	"the amount is changed": {
		run: ({ accountId }) =>
			saveAutoTopUp(db.statements, accountId, {
				...{ belowNanoUsd: usd(50), amountNanoUsd: usd(200), monthMostNanoUsd: usd(1_000) },
			}),
		...{ buysCents: 20_000, state: "on" },
	},
	"the card is replaced, the former one gone at Stripe": {
		async run({ accountId, card }) {
			const { id } = stripe.cards.card(card.customer ?? "");
			await db.sql`update saved_card set payment_method_id = ${id} where account_id = ${accountId}`;
			card.customer = null;
		},
		...{ buysCents: 10_000, state: "on" },
	},
};

for (const [what, { run, buysCents, state }] of Object.entries(CHANGES)) {
	test(`a change before the charge (${what}) prevents an unwanted or second charge`, async () => {
		const steps: { before: number; after: number }[] = [];
		let asNow = 0;
		for (let at = 1; ; at++) {
			const ann = await payer();
			const { customer } = ann.card;
			const paid = () => stripe.cards.intents.filter((one) => one.customer === customer && one.status === "succeeded");
			await spend(ann, 90);
			let before: number | undefined;
			await turn({
				at,
				async sleep() {
					before = paid().length;
					await run(ann);
				},
			});
			if (before === undefined) break;
			await pass(2);
			steps.push({ before, after: paid().length - before });
			expect({ at, twice: paid().length > 1 }).toEqual({ at, twice: false });
			const rows = await attempts(ann);
			const open = stripe.cards.intents.filter((one) => rows.some((row) => row.payment_id === one.id));
			expect(open.filter(({ status }) => /^requires/.test(status))).toEqual([]);
			expect((await setting(ann))?.state).toBe(state);
			if (before === 0 && paid()[0]?.amount === buysCents) asNow += 1;
		}
		const unpaid = steps.filter(({ before }) => before === 0);
		expect([unpaid.length > 5, unpaid.length < steps.length]).toEqual([true, true]);
		// At one step, the charge is in progress when the change happens, and still succeeds.
		expect(unpaid.filter(({ after }) => after > 0).length).toBe(buysCents === 0 ? 1 : unpaid.length);
		if (buysCents > 0) expect(asNow).toBeGreaterThanOrEqual(unpaid.length - 1);
	});
}

test("a customer deleted at Stripe is created again, and the new card is charged", async () => {
	const ann = await payer();
	const gone = ann.card.customer;
	const asked: (string | null)[] = [];
	stripe.lie(async (request) => {
		if (!request.url.endsWith("/v1/checkout/sessions")) return undefined;
		const customer = new URLSearchParams(await request.text()).get("customer");
		asked.push(customer);
		const error = { type: "invalid_request_error", code: "resource_missing", param: "customer", message: "none" };
		return customer === gone ? Response.json({ error }, { status: 400 }) : undefined;
	});
	const open = () =>
		cards.saved.setup(ann.accountId, { email: "ann@example.com", back: "http://service/credit?card=" });
	const urls = await Promise.all([open(), open()]);
	await open();
	stripe.lie();
	// Two concurrent calls each created a customer at Stripe; only the first one is used.
	expect(new Set(asked.filter((customer) => customer !== gone)).size).toBe(1);
	expect(urls).toHaveLength(2);
	const { id: given, customer } = stripe.give(stripe.lastPage());
	await pass(1);
	const [row] = await db.sql`select payment_method_id as card from saved_card where account_id = ${ann.accountId}`;
	expect(row?.card).toBe(given);
	await ann.save();
	await spend(ann, 90);
	await pass(2);
	expect([charges(ann, customer), await balance(ann)]).toEqual([1, 110]);
});
