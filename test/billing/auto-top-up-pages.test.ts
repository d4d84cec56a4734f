/** Tests that Stripe pages of unconfirmed payments and cards to detach are each handled once, even after a crash. */
import { expect, test } from "bun:test";
import { createTopUp, getTopUp, rejectTopUp } from "../../src/billing/top-ups.ts";
import { waitFor } from "../support/wait.ts";
import { usd, withAutomatic } from "./automatic.ts";
import type { OpenedPage } from "./stripe-server.ts";

const { attempts, balance, cards, db, hasty, pass, payer, setting, spend, stripe, tell } = await withAutomatic();

const paidOn = ({ id, topUpId, amount }: OpenedPage) => ({
	...{ id, object: "checkout.session", client_reference_id: topUpId, payment_intent: `pi_${id}` },
	...{ amount_total: amount, currency: "usd", payment_status: "paid", status: "complete" },
});

/** Starts an automatic top-up that waits for its owner, whose open page would save the card for later ones. */
async function onPage() {
	const ann = await payer("authentication");
	await spend(ann, 90);
	await pass(2);
	await cards.finish(ann.accountId, "http://service/credit?topup=");
	const page = stripe.lastPage();
	ann.card.nature = "good";
	return { ann, page };
}

test("a payment page that Stripe has already closed does not block the next top-up", async () => {
	for (const half of ["closed and not written down", "told by its event", "cancelled by its owner", "paid"] as const) {
		const { ann, page } = await onPage();
		const session = { id: page.id, object: "checkout.session", client_reference_id: page.topUpId };
		if (half === "paid") {
			stripe.paid.add(page.id);
			await tell("checkout.session.completed", paidOn(page));
		} else stripe.expired.add(page.id);
		if (half === "told by its event")
			await tell("checkout.session.expired", { ...session, payment_status: "unpaid", status: "expired" });
		if (half === "cancelled by its owner") await rejectTopUp(db.statements, page.topUpId, "test");
		await ann.save();
		await pass(4);
		const [first, second] = await attempts(ann);
		if (half === "paid")
			expect({ half, first, second }).toMatchObject({ half, first: { state: "succeeded" }, second: undefined });
		else
			expect({ half, first, second }).toMatchObject({
				half,
				first: { state: "ended", top_up_state: "rejected" },
				second: { state: "succeeded" },
			});
		expect({ half, balance: await balance(ann) }).toEqual({ half, balance: 110 });
		expect(await setting(ann)).toMatchObject({ state: "on" });
		await spend(ann, 90);
		await pass(2);
		expect({ half, balance: await balance(ann) }).toEqual({ half, balance: 120 });
	}
});

test("opening a page for an abandoned payment answers 409 each time", async () => {
	const { ann, page } = await onPage();
	await rejectTopUp(db.statements, page.topUpId, "test");
	const topUp = await getTopUp(db.statements, page.topUpId);
	const payer = { email: "ann@example.com", back: "http://service/credit?topup=" };
	expect(ann.accountId).toBe(topUp.accountId);
	stripe.pages.splice(stripe.pages.indexOf(page), 1);
	for (let asked = 0; asked < 2; asked++)
		await expect(cards.checkout(topUp, payer)).rejects.toMatchObject({ code: "conflict" });
});

test("opening a second page during a payment answers 409 and charges nothing", async () => {
	const { accountId } = await payer();
	const made = { accountId, amountNanoUsd: usd(100), method: "card", reference: crypto.randomUUID() } as const;
	const { id } = await createTopUp(db.statements, made);
	const topUp = await getTopUp(db.statements, id);
	const person = { email: "ann@example.com", back: "http://service/credit?topup=" };
	await cards.checkout(topUp, person);
	const page = stripe.lastPage();
	stripe.paid.add(page.id);
	await tell("checkout.session.completed", paidOn(page));
	await expect(cards.checkout(topUp, person)).rejects.toMatchObject({ code: "conflict" });
	expect(await getTopUp(db.statements, id)).toMatchObject({ state: "confirmed" });
});

test("a payment page whose cancelling lost its answer can be cancelled again if unpaid", async () => {
	const { page } = await onPage();
	await cards.expire(page.topUpId);
	await cards.expire(page.topUpId);
	const { page: paid } = await onPage();
	stripe.paid.add(paid.id);
	await expect(cards.expire(paid.topUpId)).rejects.toMatchObject({ code: "conflict" });
});

test("a removed or replaced card is removed at Stripe, with retries after errors", async () => {
	for (const how of ["error", "busy", "kept error", "lost"] as const) {
		const ann = await payer();
		stripe.cards.upset((name) => (name === "detach" ? how : undefined));
		await cards.saved.remove(ann.accountId);
		expect(await cards.saved.read(ann.accountId)).toBeNull();
		stripe.cards.upset();
		await pass(2);
		expect({ how, removed: ann.card.customer }).toEqual({ how, removed: null });
	}
	const ben = await payer();
	await cards.saved.setup(ben.accountId, { email: "ben@example.com", back: "http://service/credit?card=" });
	const given = stripe.give(stripe.lastPage());
	stripe.cards.upset((name) => (name === "detach" ? "error" : undefined));
	await pass();
	stripe.cards.upset();
	await pass(2);
	expect([ben.card.customer, given.customer === null]).toEqual([null, false]);
	const asked = stripe.cards.seen.length;
	await pass(2);
	expect(stripe.cards.seen.slice(asked)).toEqual([]);
});

test("a console removes at Stripe the card that a crashed console left there", async () => {
	const ann = await payer();
	stripe.cards.upset((name) => (name === "detach" ? "hang" : undefined));
	void hasty(60_000, 60_000)
		.saved.remove(ann.accountId)
		.catch(() => {});
	await waitFor(async () => (await cards.saved.read(ann.accountId)) === null, "the card to be removed here");
	stripe.cards.upset();
	await cards.saved.setup(ann.accountId, { email: "ann@example.com", back: "http://service/credit?card=" });
	const page = stripe.lastPage();
	const given = stripe.give(page);
	await db.sql`update card_setup set look_at = now() where id = ${page.id}`;
	await cards.collect();
	await cards.saved.remove(ann.accountId);
	await pass();
	expect([ann.card.customer, given.customer]).toEqual([null, null]);
});
