import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Route } from "playwright-core";
import type { OpenedPage } from "../../billing/stripe-server.ts";
import { startStripe } from "../../billing/stripe-server.ts";
import { newMail } from "../../console/mailbox.ts";
import { signedUp } from "../../console/person.ts";
import { untilEnd } from "../../support/at-end.ts";
import { hasChromium } from "../chromium.ts";
import { firstMinutes } from "../first-minutes.ts";
import { problemsOf } from "../page-problems.ts";
import { createPlayedPayments } from "../played-payments.ts";
import { ledgerThatAddsUp } from "../screen-ledger.ts";
import { picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

const SECRET = "whsec_browser";
const PAYMENT = "pi_browser";

setDefaultTimeout(180_000);

const stripe = untilEnd(startStripe({ withPages: true }));
const { service, open } = await withScene({
	jobs: { pace: 10 },
	env: { STRIPE_SECRET_KEY: "sk_test_local", STRIPE_WEBHOOK_SECRET: SECRET, STRIPE_API_BASE: stripe.url },
});
const person = await signedUp(service);
const BILLED = { company: "Ada Ltd", address: "1 Mill Lane\nLondon", vatId: "GB123" };
const tab = await open({ person, elsewhere: [stripe.payUrl] });
const { page } = tab;
const { tell, opened, paidSession } = createPlayedPayments(stripe, service.url);

describe.skipIf(!hasChromium)("topping up by card, in a browser", () => {
	/** Of the top-up that is paid, as the customer knows it. */
	let reference = "";

	const available = () => page.locator(".stat", { hasText: "for new requests" });
	const topUps = () => page.getByRole("table", { name: "Top-ups" }).locator("tbody tr");
	const shoot = (name: string) => picture(page, name);

	test("an amount outside the limits is refused in words before anything is sent; the presets fill the amount", async () => {
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
		await amount.fill("1000000.01");
		await page.getByText("A top-up is at least $100.00.").waitFor({ state: "detached" });
		await pay.click();
		await page.getByText("A top-up is at most $1,000,000.00.").waitFor();
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

	test("clicking again on the way there opens no second payment page; who has paid comes back to a top-up that is pending", async () => {
		const arrival = Promise.withResolvers<void>();
		const slow = async (route: Route) => {
			await arrival.promise;
			await route.continue();
		};
		await page.route(`${stripe.payUrl}**`, slow, { times: 1 });
		const leaving = page.waitForRequest(`${stripe.payUrl}**`);
		const box = await page.getByRole("button", { name: "Pay by card" }).boundingBox();
		if (box === null) throw new Error("the button is not there");
		const click = () => page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
		await click();
		await leaving;
		await click();
		arrival.resolve();
		await page.waitForURL(`${stripe.payUrl}**`);
		await page.getByRole("heading", { name: "Pay USD 250.00" }).waitFor();
		expect(opened(0).amount).toBe(25_000);
		await page.getByRole("link", { name: "Pay" }).click();
		await page.waitForURL("**/credit?topup=*&payment=done");
		await page.getByText(/The credit appears here as soon as it is verified/).waitFor();
		await topUps().getByText("Pending verification").waitFor();
		await available().getByText("$0.00").waitFor();
		await shoot("card-2-pending");
		expect(stripe.pages.length).toBe(1);
	});

	test("a forged word of Stripe changes nothing that is seen; the true one brings the credit without a reload", async () => {
		expect(await tell("whsec_guess", "checkout.session.completed", paidSession(opened(0), PAYMENT))).toBe(400);
		await page.reload();
		await topUps().getByText("Pending verification").waitFor();
		await available().getByText("$0.00").waitFor();
		await page.getByText("No movements yet.").waitFor();

		await page.evaluate(() => Object.assign(window, { notReloaded: true }));
		expect(await tell(SECRET, "checkout.session.completed", paidSession(opened(0), PAYMENT))).toBe(200);
		await available().getByText("$250.00").waitFor();
		await topUps().getByText("Confirmed").waitFor();
		await page.getByText("The payment is verified: $250.00 is in your credit.").waitFor();
		const [entry] = await ledgerThatAddsUp(page, { what: "Top-up", lines: 1 });
		expect(entry?.amountNanoUsd).toBe(250_000_000_000n);
		reference = entry?.note ?? "";
		await topUps().getByText(reference).waitFor();
		await shoot("card-3-credited");
		expect(await page.evaluate(() => Object.hasOwn(window, "notReloaded"))).toBe(true);
		await page.getByRole("button", { name: "Close" }).click();
		await page.waitForURL("**/credit");
		expect(await page.getByText("The payment is verified").count()).toBe(0);
	});

	test("the receipt opens in a window of its own, names the payment and prints on one page", async () => {
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

	test("the settings say who it is billed to, and the month is there as a PDF and as a CSV", async () => {
		await walk(page, "/settings");
		await page.getByRole("textbox", { name: "Company", exact: true }).fill("Ada Limited");
		const saved = page.waitForResponse(
			(response) => response.url().includes("billing-details") && response.request().method() === "PUT",
		);
		await page.getByRole("region", { name: "Receipts and statements" }).getByRole("button", { name: "Save" }).click();
		expect((await saved).status()).toBe(200);
		await page.getByText("Receipts and statements carry it from now on").waitFor();
		expect((await person.get("/api/console/credit/billing-details")).body).toEqual({
			...BILLED,
			company: "Ada Limited",
		});
		await walk(page, "/credit");
		const months = page.getByRole("table", { name: "Statements" }).locator("tbody tr");
		await months.first().waitFor();
		const PAID = /top_up,.*,250\.00,250\.00,.*receipts\/top_/;
		let paidIn = 0;
		// At the end of a month there are two.
		for (const month of await months.all()) {
			const [pdf, csv] = await Promise.all(
				["PDF", "CSV"].map(async (name) => {
					const path = await month.getByRole("link", { name }).getAttribute("href");
					const response = await person.fetch(path ?? "");
					return [response.headers.get("content-type"), await response.text()] as const;
				}),
			);
			expect(pdf?.[0]).toBe("application/pdf");
			expect(pdf?.[1]).toStartWith("%PDF-");
			if (PAID.test(csv?.[1] ?? "")) paidIn += 1;
		}
		expect(paidIn).toBe(1);
		await picture(page, "card-4-statements");
	});

	test("who turns back at the payment page has paid nothing and can cancel the top-up, which closes that page", async () => {
		await page.getByRole("button", { name: "$100", exact: true }).click();
		await page.getByRole("button", { name: "Pay by card" }).click();
		await page.waitForURL(`${stripe.payUrl}**`);
		await page.getByRole("link", { name: "Back" }).click();
		await page.waitForURL("**/credit?topup=*&payment=cancelled");
		await page.getByText("The payment was not made. Nothing was charged.").waitFor();
		await available().getByText("$250.00").waitFor();
		await shoot("card-5-turned-back");
		const row = topUps().filter({ hasText: "$100.00" });
		await row.getByRole("button", { name: "Cancel" }).click();
		await row.getByText("Rejected").waitFor();
		await row.getByText("Cancelled.").waitFor();
		await page.getByText("The payment was not made. No credit was given.").waitFor();
		expect(stripe.expired).toEqual(new Set([opened(1).id]));
		await page.getByRole("button", { name: "Close" }).click();
	});

	test("the browser's own way back from the payment page leads to a page that works", async () => {
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

	test("a refund and a dispute are lines of the ledger, which adds up to the balance after each of them", async () => {
		const dispute = (status: string) => ({
			id: "dp_browser",
			object: "dispute",
			payment_intent: PAYMENT,
			amount: 20_000,
			currency: "usd",
			status,
		});
		const charge = { id: "ch_1", object: "charge", payment_intent: PAYMENT, amount_refunded: 4_999, currency: "usd" };
		expect(await tell(SECRET, "charge.refunded", charge)).toBe(200);
		await page.reload();
		const [refund] = await ledgerThatAddsUp(page, { what: "Refund", lines: 2 });
		expect(refund?.amountNanoUsd).toBe(-49_990_000_000n);
		expect(refund?.note).toBe(reference);
		await available().getByText("$200.01").waitFor();

		expect(await tell(SECRET, "charge.dispute.created", dispute("needs_response"))).toBe(200);
		const [taken] = await ledgerThatAddsUp(page, { what: "Dispute", lines: 3 });
		expect(taken?.amountNanoUsd).toBe(-200_000_000_000n);
		await topUps().getByText("Disputed").waitFor();
		await shoot("card-6-disputed");
		await page.goto("/overview");
		await page.getByText(/This account is suspended/).waitFor();

		expect(await tell(SECRET, "charge.dispute.closed", dispute("won"))).toBe(200);
		await walk(page, "/credit");
		const [returned] = await ledgerThatAddsUp(page, { what: "Dispute", lines: 4 });
		expect(returned?.amountNanoUsd).toBe(200_000_000_000n);
		expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	});

	test("a card is saved on Stripe's page, and credit is bought with it by itself; a declined one says so and stops", async () => {
		const panel = page.getByRole("region", { name: "Automatic top-ups" });
		await panel.getByRole("button", { name: "Save a card" }).click();
		await page.waitForURL(`${stripe.payUrl}**`);
		const setup = stripe.pages.at(-1);
		if (setup === undefined) throw new Error("no page was opened");
		const card = stripe.give(setup);
		await page.getByRole("link", { name: "Save" }).click();
		await panel.getByText("The card is being read from Stripe.").waitFor();
		const object = { id: setup.id, object: "checkout.session", mode: "setup", payment_status: "no_payment_required" };
		expect(await tell(SECRET, "checkout.session.completed", object)).toBe(200);
		await panel.getByText("Card: Visa ending in 4242, good until 12/2031").waitFor();
		await page.waitForURL("**/credit");
		await panel.getByLabel("When the balance is below, in USD").fill("400");
		await panel.getByRole("button", { name: "Switch on" }).click();
		await panel.getByText("Buy at least as much as it is bought below.").waitFor();
		await panel.getByLabel("Buy, in USD").fill("400");
		await panel.getByRole("button", { name: "Switch on" }).click();
		await panel.getByText("Bought automatically this month:").waitFor();
		await available().getByText("$600.01").waitFor();
		await panel.getByRole("row", { name: /Paid \$400\.00/ }).waitFor();
		const [bought] = await ledgerThatAddsUp(page, { what: "Top-up", lines: 5 });
		expect(bought?.amountNanoUsd).toBe(400_000_000_000n);
		expect(stripe.cards.charged).toHaveLength(1);
		await shoot("card-7-automatic");

		card.nature = "declined";
		await panel.getByLabel("When the balance is below, in USD").fill("700");
		await panel.getByLabel("Buy, in USD").fill("1000");
		await panel.getByLabel("At most in a calendar month, in USD").fill("5000");
		await panel.getByRole("button", { name: "Save", exact: true }).click();
		await panel.getByText("Nothing is tried until the settings are saved again.").waitFor();
		await panel.getByRole("row", { name: /Declined The card was declined\./ }).waitFor();
		expect((await newMail(person.email)).text).toContain("The card was declined.");
		await shoot("card-8-declined");
		expect(await problemsOf(page)).toEqual([]);
		await page.setViewportSize({ width: 360, height: 800 });
		await page.emulateMedia({ colorScheme: "dark" });
		// Drawn anew: colours that fade from one scheme to the other are of neither.
		await page.reload();
		await panel.getByText("Nothing is tried until the settings are saved again.").waitFor();
		expect(await problemsOf(page)).toEqual([]);
		await panel.getByRole("button", { name: "Remove the card" }).click();
		await panel.getByText("With a saved card credit is bought by itself").waitFor();
		expect(card.customer).toBeNull();
	});

	test("from signing up to the first streamed answer it takes as many steps as the paper says, and nothing but mail and payment lie elsewhere", async () => {
		const email = "first-minutes@example.com";
		// Nobody any more, in a window of the usual size.
		await page.evaluate("localStorage.clear(), sessionStorage.clear()");
		await page.goto("about:blank");
		await tab.context.clearCookies();
		await page.setViewportSize({ width: 1440, height: 900 });
		await page.emulateMedia({ colorScheme: "light" });
		const paid = async () => {
			const session = paidSession(stripe.pages.at(-1) as OpenedPage, "pi_first_minutes");
			expect(await tell(SECRET, "checkout.session.completed", session)).toBe(200);
		};
		const steps = await firstMinutes(page, { home: service.url, email, payUrl: stripe.payUrl, paid });
		await service.settled();
		const [asked] = await service.db.sql`
			select streamed, ending from usage_event where account_id in
				(select account_id from member m join console_user u on u.id = m.user_id where u.email = ${email})`;
		expect(asked).toEqual({ streamed: true, ending: "finished" });
		expect(steps).toEqual({ clicks: 11, fields: 5, pages: 8, left: 2 });
	});

	test("on all this way the browser found nothing to complain of and no request failed", () => {
		expect(tab.complaints).toEqual([]);
		expect(tab.failures).toEqual([]);
	});
});
