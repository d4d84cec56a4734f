import { afterEach, expect, test } from "bun:test";
import { readAutoAttempts, saveAutoTopUp, switchOffAutoTopUp } from "../../src/billing/auto-top-ups.ts";
import { collectRefunds } from "../../src/billing/stripe-events.ts";
import { createTopUp } from "../../src/billing/top-ups.ts";
import { waitFor } from "../support/wait.ts";
import { type Death, type Payer, usd, withAutomatic } from "./automatic.ts";
import type { Mishap } from "./stripe-cards.ts";

const automatic = await withAutomatic();
const { attempts, balance, broken, cards, charges, db, pass, payer, setting, spend, stripe, tell, turn } = automatic;

afterEach(async () => {
	stripe.cards.upset();
	expect(await broken()).toEqual([]);
});

test("credit that falls below the line is bought once, and becomes credit when it is paid", async () => {
	const ann = await payer();
	await pass(2);
	expect(await attempts(ann)).toEqual([]);
	await spend(ann, 50);
	await pass(2);
	expect(await attempts(ann)).toEqual([]);
	await spend(ann, 0.000_000_001);
	await pass(3);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded", top_up_state: "confirmed" }]);
	expect(charges(ann)).toBe(1);
	expect(await balance(ann)).toBeCloseTo(150, 6);
	const [intent] = stripe.cards.intents;
	const [attempt] = await attempts(ann);
	expect(intent).toMatchObject({ amount: 10_000, currency: "usd", payment_method: ann.card.id, status: "succeeded" });
	expect(intent?.metadata).toEqual({
		...{ top_up: attempt?.top_up_id ?? "", account: ann.accountId, attempt: attempt?.id ?? "" },
	});
	await spend(ann, 120);
	await pass(2);
	expect(charges(ann)).toBe(2);
	expect(await balance(ann)).toBeCloseTo(130, 6);
});

test("a console that dies at any step leaves one charge, credited once", async () => {
	let deaths = 0;
	for (const done of [false, true]) {
		for (let at = 1; ; at++) {
			const ann = await payer();
			await spend(ann, 90);
			const death: Death = { at, done };
			const { died } = await turn(death);
			await pass(3);
			expect({ death, charges: charges(ann), balance: await balance(ann) }).toEqual({
				death,
				charges: 1,
				balance: 110,
			});
			expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
			if (!died) break;
			deaths += 1;
		}
	}
	expect(deaths).toBeGreaterThanOrEqual(20);
});

test("a console that dies while a payment fails leaves a payment that cannot be charged, and is told once", async () => {
	for (const done of [false, true]) {
		for (let at = 1; ; at++) {
			const ann = await payer("declined");
			await spend(ann, 90);
			const { died } = await turn({ at, done });
			ann.card.nature = "good";
			await pass(3);
			const rows = await attempts(ann);
			// A card that was not asked yet is good by now.
			const isPaid = rows[0]?.state === "succeeded";
			expect({ at, done, charges: charges(ann), rows: rows.length }).toEqual({
				at,
				done,
				charges: isPaid ? 1 : 0,
				rows: 1,
			});
			expect(await balance(ann)).toBe(isPaid ? 110 : 10);
			if (!isPaid) expect(await setting(ann)).toMatchObject({ state: "stopped", reason: "declined" });
			if (!died) break;
		}
	}
	expect(stripe.cards.intents.filter(({ status }) => status === "requires_payment_method")).toEqual([]);
});

test("many consoles at once begin one attempt and charge it once", async () => {
	const payers = await Promise.all(Array.from({ length: 6 }, () => payer()));
	for (const ann of payers) await spend(ann, 60);
	await Promise.all(Array.from({ length: 6 }, () => turn()));
	await db.sql`update auto_top_up_attempt set look_at = now() where ended_at is null`;
	await Promise.all(Array.from({ length: 6 }, () => turn()));
	await pass(2);
	for (const ann of payers) {
		expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
		expect(charges(ann)).toBe(1);
		expect(await balance(ann)).toBe(140);
	}
});

test("what was asked for and slept on for days charges nothing that was charged meanwhile", async () => {
	const ann = await payer();
	await spend(ann, 90);
	await pass(2);
	const [attempt] = await attempts(ann);
	// A console that had read the attempt before all that, and wakes only now.
	stripe.cards.forgetKeys();
	await db.sql`update auto_top_up_attempt set state = 'sent', ended_at = null where id = ${attempt?.id ?? ""}`;
	await pass(2);
	expect(charges(ann)).toBe(1);
	expect(await balance(ann)).toBe(110);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
});

test("a console that sleeps before any step, for longer than Stripe keeps a key, charges nothing that was charged meanwhile", async () => {
	let slept = 0;
	for (let at = 1; ; at++) {
		const ann = await payer();
		await spend(ann, 90);
		const before = slept;
		await turn({
			at,
			async sleep() {
				slept += 1;
				stripe.cards.forgetKeys();
				await pass(3);
				stripe.cards.forgetKeys();
			},
		});
		await pass(2);
		expect({ at, charges: charges(ann), balance: await balance(ann) }).toEqual({ at, charges: 1, balance: 110 });
		expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
		if (slept === before) break;
	}
	expect(slept).toBeGreaterThanOrEqual(10);
});

test("a console that sleeps while another one charges and hears nothing of it charges no second payment", async () => {
	let slept = 0;
	for (let at = 1; ; at++) {
		const ann = await payer();
		await spend(ann, 90);
		const before = slept;
		await turn({
			at,
			async sleep() {
				slept += 1;
				stripe.cards.forgetKeys();
				stripe.cards.upset((name) =>
					name === "confirm" ? "lost" : name === "GET payment_intents" ? "error" : undefined,
				);
				await pass(1);
				stripe.cards.upset();
				stripe.cards.forgetKeys();
			},
		});
		await pass(2);
		expect({ at, charges: charges(ann), balance: await balance(ann) }).toEqual({ at, charges: 1, balance: 110 });
		if (slept === before) break;
	}
});

const MISHAPS: Exclude<Mishap, undefined | "hang">[] = ["error", "kept error", "lost", "busy"];
for (const how of MISHAPS) {
	test(`Stripe answers badly (${how}) at each of its calls, for a while: one charge, or none and nothing lost`, async () => {
		for (const call of ["payment_intents", "confirm", "GET payment_intents"]) {
			const ann = await payer();
			await spend(ann, 90);
			stripe.cards.upset((name) => (name === call ? how : undefined));
			await pass(2);
			expect(await attempts(ann)).toHaveLength(1);
			stripe.cards.upset();
			await pass(4);
			expect({ call, charges: charges(ann), balance: await balance(ann) }).toEqual({ call, charges: 1, balance: 110 });
		}
		const ben = await payer("declined");
		await spend(ben, 90);
		stripe.cards.upset((name) => (name === "cancel" ? how : undefined));
		await pass(2);
		stripe.cards.upset();
		await pass(2);
		expect(await attempts(ben)).toMatchObject([{ state: "declined", reason: "declined", top_up_state: "rejected" }]);
		expect(await setting(ben)).toMatchObject({ state: "stopped" });
	});
}

test("words of Stripe that come early, twice, late or out of order credit once; those that lie credit nothing", async () => {
	const ann = await payer("processing");
	await spend(ann, 90);
	await pass(1);
	const [attempt] = await attempts(ann);
	const intent = stripe.cards.intents.find(({ id }) => id === attempt?.payment_id);
	if (attempt === undefined || intent === undefined) throw new Error("nothing was sent");
	const paid = { ...intent, status: "succeeded", amount_received: 10_000 };
	const metadata = { ...intent.metadata };
	for (const lie of [
		{ ...paid, metadata: { ...metadata, attempt: "att_of_nobody" } },
		{ ...paid, metadata: { ...metadata, top_up: "top_of_nobody" } },
		{ ...paid, status: "processing" },
		{ ...paid, metadata: {} },
	]) {
		expect(await tell("payment_intent.succeeded", lie)).toBe(200);
		expect(await balance(ann)).toBe(10);
	}
	expect(await attempts(ann)).toMatchObject([{ state: "sent" }]);
	await tell("payment_intent.payment_failed", { ...intent, status: "requires_payment_method" });
	expect(await attempts(ann)).toMatchObject([{ state: "sent" }]);
	intent.status = "succeeded";
	intent.amount_received = 10_000;
	await Promise.all([tell("payment_intent.succeeded", paid), tell("payment_intent.succeeded", paid), turn(), turn()]);
	await tell("payment_intent.payment_failed", { ...intent, status: "requires_payment_method" });
	await tell("payment_intent.canceled", { ...intent, status: "canceled" });
	await pass(2);
	expect(await balance(ann)).toBe(110);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
	await db.sql`update stripe_finding set resolved_at = now() where resolved_at is null`;
});

test("a card that was charged another amount credits nothing, raises an alarm and is charged no more", async () => {
	for (const [amount_received, currency] of [
		[9_999, "usd"],
		[1_000_000, "usd"],
		[10_000, "eur"],
		[-10_000, "usd"],
	] as const) {
		const ann = await payer("processing");
		await spend(ann, 90);
		await pass(1);
		const [attempt] = await attempts(ann);
		const intent = stripe.cards.intents.find(({ id }) => id === attempt?.payment_id);
		const paid = { ...intent, status: "succeeded", amount_received, currency };
		expect(await tell("payment_intent.succeeded", paid)).toBe(200);
		await pass(2);
		expect(await balance(ann)).toBe(10);
		expect(await setting(ann)).toMatchObject({ state: "stopped", reason: "uncredited" });
		const found = await db.sql`select 1 from stripe_finding where id = ${`paid:${intent?.id}`} and resolved_at is null`;
		expect(found).toHaveLength(1);
		expect(await attempts(ann)).toHaveLength(1);
	}
	await db.sql`update stripe_finding set resolved_at = now() where resolved_at is null`;
});

test("a card that is declined, expired in between or removed at Stripe is asked once and no more until it is saved again", async () => {
	for (const [nature, reason] of [
		["declined", "declined"],
		["funds", "funds"],
		["gone", "card_gone"],
	] as const) {
		const ann = await payer(nature === "gone" ? "good" : nature);
		const customer = ann.card.customer;
		if (nature === "gone") ann.card.customer = null;
		await spend(ann, 90);
		await pass(3);
		expect(await attempts(ann)).toMatchObject([{ state: "declined", reason, top_up_state: "rejected" }]);
		expect(await setting(ann)).toMatchObject({ state: "stopped", reason, tell: reason });
		await spend(ann, 1);
		await pass(2);
		expect(await attempts(ann)).toHaveLength(1);
		ann.card.nature = "good";
		ann.card.customer = customer;
		await ann.save();
		expect(await setting(ann)).toMatchObject({ state: "on", reason: null, tell: null });
		await pass(2);
		expect(charges(ann)).toBe(1);
		expect(await balance(ann)).toBe(109);
	}
});

test("a payment that its cardholder must confirm waits for him on a page: paid there once, and all goes on", async () => {
	for (const nature of ["authentication", "action"] as const) {
		const ann = await payer(nature);
		await spend(ann, 90);
		await pass(2);
		const [attempt] = await attempts(ann);
		expect(attempt).toMatchObject({ state: "needs_authentication", reason: "authentication", top_up_state: "pending" });
		expect(await setting(ann)).toMatchObject({ state: "needs_owner", tell: "authentication" });
		const intent = stripe.cards.intents.find(({ id }) => id === attempt?.payment_id);
		expect(intent?.status).toBe("canceled");
		const back = "http://service/credit?topup=";
		const url = await cards.finish(ann.accountId, back);
		expect(await cards.finish(ann.accountId, back)).toBe(url);
		const page = stripe.pages.at(-1);
		if (page === undefined) throw new Error("no page was opened");
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
		// Its word alone wakes whoever sees to it: no moment has to pass.
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

test("who saves anew, switches off or removes the card instead of confirming closes that page first: nobody pays twice for one crossing", async () => {
	const ann = await payer("authentication");
	await spend(ann, 90);
	await pass(2);
	await cards.finish(ann.accountId, "http://service/credit?topup=");
	const page = stripe.pages.at(-1);
	if (page === undefined) throw new Error("no page was opened");
	// It may have been paid already: nothing new begins before that is known.
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
		// However rarely it was looked at by then.
		await db.sql`update auto_top_up_attempt set look_at = now() + interval '1 hour' where account_id = ${ben.accountId}`;
		await off(ben);
		await turn();
		expect(await attempts(ben)).toMatchObject([{ state: "ended", top_up_state: "rejected" }]);
		await expect(cards.finish(ben.accountId, "http://service/")).rejects.toThrow("No payment waits");
	}
});

test("a page that Stripe is still opening while its payment is given up opens for nobody", async () => {
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

test("a second page for a payment, once Stripe has forgotten the first, is closed again: nothing that was paid there would count", async () => {
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

test("switched off or removed while a payment is under way: that one ends by its own outcome, and none begins", async () => {
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

test("a card is read from the page where it was given, the newest one alone; one that is removed takes the settings with it", async () => {
	const ann = await payer();
	const { accountId } = ann;
	const open = async () => {
		await cards.saved.setup(accountId, { email: "ann@example.com", back: "http://service/credit?card=" });
		const page = stripe.pages.at(-1);
		if (page === undefined) throw new Error("no page was opened");
		return page;
	};
	const cardOf = async () => {
		const [row] = await db.sql`select payment_method_id as card from saved_card where account_id = ${accountId}`;
		return row?.card;
	};
	const [old, present] = [await open(), await open()];
	expect(Object.fromEntries(present.fields)).toMatchObject({ mode: "setup", customer: ann.card.customer });
	await pass(1);
	expect(await cardOf()).toBe(ann.card.id);
	// Its page was replaced by another one while Stripe was asked for it.
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
	const last = await open();
	stripe.give(last);
	await spend(ann, 90);
	await pass(3);
	expect(await cards.saved.read(accountId)).not.toBeNull();
	expect(await attempts(ann)).toEqual([]);
	await ann.save();
	await pass(2);
	expect(await balance(ann)).toBe(110);
});

test("in a month of the account's zone no more is begun than it allows; the next month buys again by itself", async () => {
	const ann = await payer("good", { most: 250 });
	await db.sql`update account set time_zone = 'Pacific/Auckland' where id = ${ann.accountId}`;
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
			(date_trunc('month', now() at time zone 'Pacific/Auckland') + interval '1 month') at time zone 'Pacific/Auckland')
			- look_at between interval '0' and interval '5 minutes' as next
		from auto_top_up where account_id = ${ann.accountId}`;
	expect(held?.next).toBe(true);
	// The last moment of the month before, there; and the first of this one.
	const zone = "Pacific/Auckland";
	await db.sql`
		update auto_top_up_attempt set begun_at = date_trunc('month', now(), ${zone}) where account_id = ${ann.accountId}`;
	await db.sql`update auto_top_up set look_at = now() where account_id = ${ann.accountId}`;
	await pass(2);
	expect(charges(ann)).toBe(2);
	await db.sql`
		update auto_top_up_attempt set begun_at = begun_at - interval '1 microsecond' where account_id = ${ann.accountId}`;
	await db.sql`update auto_top_up set look_at = now() where account_id = ${ann.accountId}`;
	await pass(2);
	expect(charges(ann)).toBe(3);
	expect(await balance(ann)).toBe(110);
});

test("money that goes back, or is disputed, is not taken from the same card again", async () => {
	for (const what of ["refund", "dispute"] as const) {
		const ann = await payer();
		await spend(ann, 90);
		await pass(2);
		const [attempt] = await attempts(ann);
		const payment_intent = attempt?.payment_id;
		const refund = { id: "ch_1", object: "charge", payment_intent, amount_refunded: 10_000, currency: "usd" };
		const dispute = { id: `dp_${payment_intent}`, object: "dispute", payment_intent, amount: 10_000, currency: "usd" };
		if (what === "refund") await tell("charge.refunded", refund);
		else await tell("charge.dispute.created", { ...dispute, status: "needs_response" });
		await pass(3);
		expect(await balance(ann)).toBe(10);
		expect(charges(ann)).toBe(1);
		expect(await setting(ann)).toMatchObject({ state: "stopped", reason: what === "refund" ? "refunded" : "disputed" });
		expect(await attempts(ann)).toMatchObject([
			{ state: "succeeded", top_up_state: what === "refund" ? "refunded" : "disputed" },
		]);
	}
});

test("what goes back stops it also where Stripe tells of that before the payment, or in the same moment", async () => {
	for (const what of ["refunded", "disputed"] as const)
		for (const when of ["before", "at once"] as const) {
			const ann = await payer();
			const payment_intent = `pi_${ann.accountId}_${when}`;
			const { id: topUp } = await createTopUp(db.statements, {
				...{ accountId: ann.accountId, amountNanoUsd: usd(100), method: "card", reference: payment_intent },
			});
			const page = `cs_${topUp}`;
			await db.sql`insert into stripe_checkout (id, top_up_id) values (${page}, ${topUp})`;
			const about = { payment_intent, currency: "usd" };
			const back = () =>
				what === "refunded"
					? tell("charge.refunded", { id: "ch_1", object: "charge", ...about, amount_refunded: 10_000 })
					: tell("charge.dispute.created", {
							...{ id: `dp_${payment_intent}`, object: "dispute", ...about, amount: 10_000, status: "needs_response" },
						});
			const paid = () =>
				tell("checkout.session.completed", {
					...{ id: page, object: "checkout.session", client_reference_id: topUp, ...about },
					...{ payment_status: "paid", status: "complete", amount_total: 10_000 },
				});
			if (when === "before") await back();
			expect(await Promise.all(when === "before" ? [paid()] : [paid(), back()])).not.toContain(500);
			expect([what, when, await setting(ann)]).toMatchObject([what, when, { state: "stopped", reason: what }]);
			// What two transactions have left to each other is booked all the same.
			await collectRefunds(db.tx);
			expect(await balance(ann)).toBe(100);
		}
});

test("a payment that could not be asked for within an hour is not charged any more; its account is looked at anew", async () => {
	for (const isMade of [false, true]) {
		const ann = await payer();
		await spend(ann, 90);
		stripe.cards.upset((name) => (name === (isMade ? "confirm" : "payment_intents") ? "error" : undefined));
		await pass(2);
		stripe.cards.upset();
		await db.sql`update auto_top_up_attempt set begun_at = now() - interval '61 minutes' where account_id = ${ann.accountId}`;
		const made = stripe.cards.intents.length;
		await pass(1);
		expect(stripe.cards.intents.length).toBe(made);
		expect(await attempts(ann)).toMatchObject([{ state: "ended", reason: "unanswered" }]);
		expect(charges(ann)).toBe(0);
		await pass(2);
		expect(await attempts(ann)).toMatchObject([{ state: "ended" }, { state: "succeeded" }]);
		expect(charges(ann)).toBe(1);
		expect(await balance(ann)).toBe(110);
	}
});

test("a payment that no bank decides about alarms operators and tells its people once, is never tried beside, and ends as it is decided", async () => {
	for (const outcome of ["succeeded", "canceled", "requires_payment_method"] as const) {
		const ann = await payer("processing");
		await spend(ann, 90);
		await pass(1);
		const [attempt] = await attempts(ann);
		const intent = stripe.cards.intents.find(({ id }) => id === attempt?.payment_id);
		if (attempt === undefined || intent === undefined) throw new Error("nothing was sent");
		const open = () =>
			db.sql`select kind from stripe_finding where id = ${`open:${attempt.id}`} and resolved_at is null`;
		const age = (hours: number) =>
			db.sql`update auto_top_up_attempt set begun_at = now() - ${hours} * interval '1 hour' where id = ${attempt.id}`;
		await age(47);
		await pass(2);
		expect([await open(), (await setting(ann))?.tell]).toEqual([[], null] as never);
		await age(49);
		await Promise.all([pass(2), pass(2)]);
		expect([...(await open())]).toEqual([{ kind: "undecided" }] as never);
		expect(await setting(ann)).toEqual({ state: "on", reason: null, tell: "undecided" });
		await db.sql`update auto_top_up set tell = null where account_id = ${ann.accountId}`;
		expect((await readAutoAttempts(db.statements, ann.accountId)).attempts).toMatchObject([
			{ state: "running", reason: "undecided" },
		]);
		await spend(ann, 5);
		await pass(3);
		expect([(await attempts(ann)).length, charges(ann), (await setting(ann))?.tell]).toEqual([1, 0, null]);
		intent.status = outcome;
		if (outcome === "succeeded") {
			intent.amount_received = intent.amount;
			expect(await tell("payment_intent.succeeded", { ...intent })).toBe(200);
		} else intent.last_payment_error = { type: "card_error", code: "card_declined", decline_code: "do_not_honor" };
		await pass(2);
		expect([...(await open())]).toEqual([]);
		// A console that looked before the end and says so only now.
		await db.sql`update stripe_finding set id = id || ${outcome} where id = ${`open:${attempt.id}`}`;
		await db.sql`select auto_top_up_undecided(${attempt.id}, 'late')`;
		expect([...(await open())]).toEqual([]);
		const isPaid = outcome === "succeeded";
		expect(await balance(ann)).toBe(isPaid ? 105 : 5);
		expect(await setting(ann)).toMatchObject(isPaid ? { state: "on" } : { state: "stopped", reason: "declined" });
		expect((await readAutoAttempts(db.statements, ann.accountId)).attempts).toMatchObject([
			{ state: isPaid ? "succeeded" : "declined", reason: isPaid ? null : "declined" },
		]);
	}
});

/** What may happen between crossing and charge, and what is bought after it: nothing, or by what is set now. */
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
	test(`between crossing and charge, ${what}: what is not wanted any more is not charged, whichever step was next, and nothing twice`, async () => {
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
		// One step is the charge itself: what changes then comes in the same moment.
		const bought = unpaid.filter(({ after }) => after > 0).length;
		expect(bought).toBe(buysCents === 0 ? 1 : unpaid.length);
		if (buysCents > 0) expect(asNow).toBeGreaterThanOrEqual(unpaid.length - 1);
	});
}

test("a suspended account buys nothing, and again when it is active", async () => {
	const ann = await payer();
	await db.sql`update account set state = 'suspended' where id = ${ann.accountId}`;
	await spend(ann, 90);
	await pass(2);
	expect(await attempts(ann)).toEqual([]);
	await db.sql`update account set state = 'active' where id = ${ann.accountId}`;
	await db.sql`update auto_top_up set look_at = now() where account_id = ${ann.accountId}`;
	await pass(2);
	expect(charges(ann)).toBe(1);
});

test("what clearing finds: a charge that nobody told of becomes credit, and credit that was not paid is an alarm", async () => {
	const ann = await payer("processing");
	await spend(ann, 90);
	await pass(1);
	const [intent] = stripe.cards.intents;
	if (intent === undefined) throw new Error("nothing was sent");
	const clear = async () => {
		await db.sql`delete from stripe_clearing`;
		stripe.held.payment_intents.splice(
			0,
			stripe.held.payment_intents.length,
			...stripe.cards.intents.map((one) => ({ ...one })),
		);
		await cards.clear();
		return db.sql`select kind from stripe_finding where id = ${`books:${intent.metadata.top_up}`} and resolved_at is null`;
	};
	Object.assign(intent, { status: "succeeded", amount_received: intent.amount });
	expect(await clear()).toHaveLength(0);
	expect(await balance(ann)).toBe(110);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
	expect(await clear()).toHaveLength(0);
	expect(await balance(ann)).toBe(110);
	Object.assign(intent, { status: "canceled" });
	expect(await clear()).toEqual([{ kind: "unpaid" }] as never);
	Object.assign(intent, { status: "succeeded" });
	expect(await clear()).toHaveLength(0);
	await db.sql`update stripe_finding set resolved_at = now() where resolved_at is null`;
});

test("amounts that one payment would not cover, or that no card can pay, are refused", async () => {
	for (const [amounts, param] of [
		[{ amount: 99.99 }, "amountUsd"],
		[{ amount: 100.001 }, "amountUsd"],
		[{ amount: 1_000_001, most: 2_000_000 }, "amountUsd"],
		[{ below: 150 }, "amountUsd"],
		[{ below: 0 }, "belowUsd"],
		[{ most: 99 }, "monthMostUsd"],
	] as const)
		await expect(payer("good", amounts)).rejects.toMatchObject({ code: "invalid_request", param });
});
