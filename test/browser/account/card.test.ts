import { beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Route } from "playwright-core";
import { type OpenedPage, signedEvent, startStripe } from "../../billing/stripe-server.ts";
import { type Person, signedUp } from "../../console/person.ts";
import { testsMayTake, untilEnd } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { becomeVisitor, cookiesOf, hasChromium } from "../chromium.ts";
import { signUpToFirstAnswer } from "../first-minutes.ts";
import { readConsistentLedger } from "../screen-ledger.ts";
import { picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

const SECRET = "whsec_browser";
const PAYMENT = "pi_browser";
const NEWCOMER = "first-minutes@example.com";

testsMayTake(180_000);

const stripe = untilEnd(startStripe({ withPages: true }));
const { service, open } = await withScene({
	jobs: { pace: 10 },
	env: { STRIPE_SECRET_KEY: "sk_test_local", STRIPE_WEBHOOK_SECRET: SECRET, STRIPE_API_BASE: stripe.url },
});
const BILLED = { company: "Ada Ltd", address: "1 Mill Lane\nLondon", vatId: "GB123" };
const tab = await open({ elsewhere: [stripe.payUrl] });
const { page } = tab;

/** Sends an event that is signed with `secret`, as Stripe would; returns the status of the response. */
async function tell(secret: string, type: string, object: Record<string, unknown>): Promise<number> {
	const { body, signature } = await signedEvent(secret, type, object);
	const headers = { "content-type": "application/json", "stripe-signature": signature };
	const response = await fetch(`${service.url}/api/stripe/webhook`, { method: "POST", headers, body });
	await response.text();
	return response.status;
}

/** Returns the payment page with this number; expects it to be the page opened last. */
function opened(number: number): OpenedPage {
	const found = stripe.pages[number];
	if (found === undefined || stripe.pages.length !== number + 1)
		throw new Error(`${stripe.pages.length} payment pages were opened, not ${number + 1}`);
	return found;
}

const paidSession = ({ id, topUpId, amount }: OpenedPage, payment: string) => ({
	id,
	object: "checkout.session",
	client_reference_id: topUpId,
	payment_intent: payment,
	payment_status: "paid",
	amount_total: amount,
	currency: "usd",
});

const available = () => page.locator(".stat", { hasText: "for new requests" });
const topUps = () => page.getByRole("table", { name: "Top-ups" }).locator("tbody tr");
const shoot = (name: string) => picture(page, name);

describe.skipIf(!(hasChromium && LONG))("the payment page", () => {
	let person: Person;
	beforeAll(async () => {
		person = await signedUp(service);
		await tab.context.addCookies(cookiesOf(person, service.url));
	});

	test("refuses a card payment outside the limits before it is sent", async () => {
		await page.goto("/credit");
		const amount = page.getByLabel("Amount in USD");
		const pay = page.getByRole("button", { name: "Pay by card" });
		let sent = 0;
		page.on("request", (request) => {
			if (request.method() === "POST") sent += 1;
		});
		await amount.fill("99.99");
		await pay.click();
		await page.getByText("A top-up is at least $100.00.").waitFor();
		await shoot("card-1-too-little");
		await amount.fill("1000000");
		await page.getByText("A top-up is at least $100.00.").waitFor({ state: "detached" });
		await pay.click();
		await page.getByText("A top-up is at most $999,999.99.").waitFor();
		for (const [preset, filled] of [
			["$100", "100"],
			["$500", "500"],
			["$1,000", "1,000"],
			["$250", "250"],
		] as const) {
			await page.getByRole("button", { name: preset, exact: true }).click();
			expect(await amount.inputValue()).toBe(filled);
			expect(await page.getByText(/A top-up is at/).count()).toBe(0);
		}
		expect(sent).toBe(0);
		expect(stripe.pages).toEqual([]);
	});

	test("shows a paid top-up as pending until Stripe confirms the payment", async () => {
		await page.getByRole("button", { name: "Pay by card" }).click();
		await page.waitForURL(`${stripe.payUrl}**`);
		await page.getByRole("heading", { name: "Pay USD 250.00" }).waitFor();
		await page.getByRole("link", { name: "Pay" }).click();
		await page.waitForURL("**/credit?topup=*&payment=done");
		await topUps().getByText("Pending verification").waitFor();
		await shoot("card-2-pending");
		expect(await tell(SECRET, "checkout.session.completed", paidSession(opened(0), PAYMENT))).toBe(200);
		await available().getByText("$250.00").waitFor();
		const [entry] = await readConsistentLedger(page, { what: "Top-up", lines: 1 });
		expect(entry?.amountNanoUsd).toBe(250_000_000_000n);
		await page.getByText("Payment confirmed").waitFor();
		await page.getByRole("button", { name: "Close" }).click();
		await page.waitForURL("**/credit");
		expect(await page.getByText("Payment confirmed").count()).toBe(0);
	});

	test("opens the receipt of a top-up in a new window, which prints on one page", async () => {
		expect((await person.send("PUT", "/api/console/credit/billing-details", BILLED)).body).toEqual(BILLED);
		const [receipt] = await Promise.all([
			tab.context.waitForEvent("page"),
			topUps().getByRole("link", { name: "Receipt" }).click(),
		]);
		await receipt.getByRole("heading", { name: "Receipt" }).waitFor();
		for (const fact of [
			opened(0).topUpId,
			"Billed to Ada Ltd 1 Mill Lane London VAT ID GB123",
			"Amount USD 250.00",
			"Paid by Card",
			"State Paid",
		]) {
			await receipt.getByRole("row", { name: fact }).waitFor();
		}
		await picture(receipt, "card-4-receipt");
		const pdf = Buffer.from(await receipt.pdf({ format: "A4" })).toString("latin1");
		expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
		await receipt.close();
	});

	test("cancels an unpaid top-up, which expires Stripe's page for it", async () => {
		await page.getByRole("button", { name: "$100", exact: true }).click();
		await page.getByRole("button", { name: "Pay by card" }).click();
		await page.waitForURL(`${stripe.payUrl}**`);
		await page.getByRole("link", { name: "Back" }).click();
		await page.waitForURL("**/credit?topup=*&payment=cancelled");
		await page.getByText("The payment was not completed. Nothing was charged.").waitFor();
		await available().getByText("$250.00").waitFor();
		await shoot("card-5-turned-back");
		const row = topUps().filter({ hasText: "$100.00" });
		await row.getByRole("button", { name: "Cancel" }).click();
		await row.getByText("Rejected").waitFor();
		await row.getByText("Cancelled.").waitFor();
		await page.getByText("The payment was not completed. No credit was added.").waitFor();
		expect(stripe.expired).toEqual(new Set([opened(1).id]));
		await page.getByRole("button", { name: "Close" }).click();
	});

	test("works again after the browser's back button leaves Stripe's page", async () => {
		await page.getByRole("button", { name: "$500", exact: true }).click();
		await page.getByRole("button", { name: "Pay by card" }).click();
		await page.waitForURL(`${stripe.payUrl}**`);
		await page.goBack();
		const row = topUps().filter({ hasText: "$500.00" });
		await row.getByText("Pending verification").waitFor();
		expect(opened(2).amount).toBe(50_000);
		await page.getByRole("button", { name: "Pay by card" }).and(page.locator(":enabled")).waitFor();
		expect(await tell(SECRET, "checkout.session.expired", { id: opened(2).id, object: "checkout.session" })).toBe(200);
		await row.getByText("It was not paid.").waitFor();
	});
});

describe.skipIf(!hasChromium)("top-up by card in a browser", () => {
	const panel = page?.getByRole("region", { name: "Automatic top-ups" });

	test("a new customer gets the first answer after 11 clicks and 5 completed fields", async () => {
		if (LONG) await becomeVisitor(tab);
		const before = stripe.pages.length;
		// Position of the button, which must be read before the browser leaves the page.
		let box: Awaited<ReturnType<Locator["boundingBox"]>> = null;
		const lookWhere = async (route: Route) => {
			box = await page.getByRole("button", { name: "Pay by card" }).boundingBox();
			await route.continue();
		};
		const clickAgain = async (route: Route) => {
			if (box === null) throw new Error("the button is not there");
			await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
			await route.continue();
		};
		await page.route("**/credit/top-ups/card*", lookWhere, { times: 1 });
		await page.route(`${stripe.payUrl}**`, clickAgain, { times: 1 });
		let reference = "";
		const paid = async () => {
			const payment = opened(before);
			await topUps().getByText("Pending verification").waitFor();
			expect(await tell("whsec_guess", "checkout.session.completed", paidSession(payment, "pi_first"))).toBe(400);
			await available().getByText("$0.00").waitFor();
			expect(await tell(SECRET, "checkout.session.completed", paidSession(payment, "pi_first"))).toBe(200);
			await available().getByText("$100.00").waitFor();
			const [entry] = await readConsistentLedger(page, { what: "Top-up", lines: 1 });
			expect(entry?.amountNanoUsd).toBe(100_000_000_000n);
			reference = entry?.note ?? "";
		};
		const steps = await signUpToFirstAnswer(page, { home: service.url, email: NEWCOMER, payUrl: stripe.payUrl, paid });
		expect(steps).toEqual({ clicks: 11, fields: 5, pages: 8, left: 2 });
		await service.settled();
		const [asked] = await service.db.sql`
			select streamed, ending from usage_event where account_id in
				(select account_id from member m join console_user u on u.id = m.user_id where u.email = ${NEWCOMER})`;
		expect(asked).toEqual({ streamed: true, ending: "finished" });

		await walk(page, "/credit");
		const row = topUps().filter({ hasText: reference });
		await row.getByText("Confirmed").waitFor();
		const receipt = await page.request.get(
			(await row.getByRole("link", { name: "Receipt" }).getAttribute("href")) ?? "",
		);
		expect(await receipt.text()).toContain("USD 100.00");
		const months = page.getByRole("table", { name: "Statements" });
		for (const [name, type] of [
			["PDF", "application/pdf"],
			["CSV", "text/csv"],
		] as const) {
			const path = await months.getByRole("link", { name }).first().getAttribute("href");
			expect((await page.request.get(path ?? "")).headers()["content-type"]).toStartWith(type);
		}
	});

	// The short form tests saved cards in `billing/auto-top-ups.test.ts`.
	test.if(LONG)("a card saved on Stripe's page is charged automatically", async () => {
		await walk(page, "/credit");
		await panel.getByRole("button", { name: "Save a card" }).click();
		await page.waitForURL(`${stripe.payUrl}**`);
		const setup = stripe.pages.at(-1);
		if (setup === undefined) throw new Error("no page was opened");
		stripe.give(setup);
		await page.getByRole("link", { name: "Save" }).click();
		await panel.getByText("Waiting for Stripe to confirm the card.").waitFor();
		const object = { id: setup.id, object: "checkout.session", mode: "setup", payment_status: "no_payment_required" };
		expect(await tell(SECRET, "checkout.session.completed", object)).toBe(200);
		await panel.getByText("Card: Visa ending in 4242, expires 12/2031").waitFor();
		await page.waitForURL("**/credit");
		await panel.getByLabel("When the balance falls below (USD)").fill("400");
		await panel.getByRole("button", { name: "Switch on" }).click();
		await panel.getByText("The top-up amount must be at least the balance threshold.").waitFor();
		expect(tab.failures.splice(0)).toEqual(["400 PUT /api/console/credit/auto-top-up"]);
		await panel.getByLabel("Top-up amount (USD)").fill("400");
		await panel.getByRole("button", { name: "Switch on" }).click();
		await panel.getByText("Automatic top-ups this month:").waitFor();
		await available().getByText("$500.00").waitFor();
		await panel.getByRole("row", { name: /Paid \$400\.00/ }).waitFor();
		expect(stripe.cards.charged).toHaveLength(1);
		await shoot("card-7-automatic");
	});

	test("the browser logs no error and no request fails", () => {
		expect(tab.complaints).toEqual([]);
		expect(tab.failures).toEqual([]);
	});
});
