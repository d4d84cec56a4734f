import { expect, test } from "bun:test";
import { LONG } from "../support/long-form.ts";
import { type DeathStep, withAutomatic } from "./automatic.ts";

const { attempts, balance, cards, charges, db, pass, payer, setting, spend, stripe, turn } = await withAutomatic();

test("credit below the threshold starts one payment, credited once it is paid", async () => {
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

/** True: the console dies after a step. A death before it leaves the state after the previous step: long run only. */
const DONE = LONG ? [false, true] : [true];

test("a console that dies at any step of a top-up leaves one charge, credited once", async () => {
	let deaths = 0;
	for (const done of DONE) {
		for (let at = 1; ; at++) {
			const ann = await payer();
			await spend(ann, 90);
			const death: DeathStep = { at, done };
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
	expect(deaths).toBeGreaterThanOrEqual(10 * DONE.length);
});

test("a console that dies during a failed payment charges nothing and mails once", async () => {
	for (const done of DONE) {
		for (let at = 1; ; at++) {
			const ann = await payer("declined");
			await spend(ann, 90);
			const { died } = await turn({ at, done });
			ann.card.nature = "good";
			await pass(3);
			const rows = await attempts(ann);
			// If the crash came before the charge, the card is valid again by now, so the top-up succeeds.
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

test("concurrent consoles start one automatic payment and charge it once", async () => {
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

test("a console that continues after days of suspension repeats no charge", async () => {
	const ann = await payer();
	await spend(ann, 90);
	await pass(2);
	const [attempt] = await attempts(ann);
	// A console that read the attempt days ago sends it now, when Stripe has forgotten the idempotency key.
	stripe.cards.forgetKeys();
	await db.sql`update auto_top_up_attempt set state = 'sent', ended_at = null where id = ${attempt?.id ?? ""}`;
	await pass(2);
	expect(charges(ann)).toBe(1);
	expect(await balance(ann)).toBe(110);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
});

test.each([
	["alone", 3, undefined],
	["after errors of Stripe", 1, { confirm: "lost", "GET payment_intents": "error" }],
] as const)("a console paused until Stripe's idempotency keys expired charges once (%s)", async (_, passes, faults) => {
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
				stripe.cards.upset((name) => faults?.[name as keyof typeof faults]);
				await pass(passes);
				stripe.cards.upset();
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

test("a suspended account starts no automatic top-up until it is active again", async () => {
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

test("the daily comparison credits charges without an event, reports unpaid credit", async () => {
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

test("an automatic top-up above the service's or the card's maximum is refused", async () => {
	for (const [amounts, param] of [
		[{ amount: 99.99 }, "amountUsd"],
		[{ amount: 100.001 }, "amountUsd"],
		[{ amount: 1_000_000, most: 2_000_000 }, "amountUsd"],
		[{ amount: 1_000_001, most: 2_000_000 }, "amountUsd"],
		[{ below: 150 }, "amountUsd"],
		[{ below: 0 }, "belowUsd"],
		[{ most: 99 }, "monthMostUsd"],
	] as const)
		await expect(payer("good", amounts)).rejects.toMatchObject({ code: "invalid_request", param });
});
