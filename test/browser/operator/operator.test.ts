import { describe, expect, test } from "bun:test";
import type { Page, Route } from "playwright-core";
import { operator, signedUp } from "../../console/person.ts";
import { testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { hasChromium, storeSecret } from "../chromium.ts";
import { ledgerThatAddsUp } from "../screen-ledger.ts";
import { callWith, picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

testsMayTake(180_000);

const { service, open } = await withScene({ env: { TOPUP_SECOND_LOOK_USD: "5000" } });
const customer = await signedUp(service);
const { secret } = (await customer.send("POST", "/api/console/keys", { name: "production" })).body;
const [first, second] = [await operator(service), await operator(service)];
const colleagueEmail = second.email;
/** The customer's credit page, and the pages of two operators. */
const tabs = [
	await open({ person: customer }),
	await open({ person: first }),
	...(LONG ? [await open({ person: second })] : []),
];
const [credit, office, colleague] = tabs.map(({ page }) => page) as [Page, Page, Page];

describe.skipIf(!hasChromium)("an operator and a customer in a browser", () => {
	const available = () => credit.locator(".stat", { hasText: "for new requests" });
	const topUpOf = (page: Page, text: string) =>
		page.getByRole("table", { name: "Top-ups" }).locator("tbody tr", { hasText: text });
	const log = () => office.getByRole("table", { name: "Audit log" });
	/** Statuses of the requests that tests expect to fail. */
	const expected: string[] = [];

	const call = () => callWith(service.url, secret);

	/** The customer announces a transfer. Returns its reference. */
	async function announce(usd: string): Promise<string> {
		const another = credit.getByRole("button", { name: "New top-up" });
		if (await another.isVisible()) await another.click();
		await credit.getByLabel("Amount in USD").fill(usd);
		await credit.getByRole("button", { name: "Create the top-up" }).click();
		await credit.getByText("Your top-up is pending").waitFor();
		return (await credit.locator(".facts .id code").textContent()) ?? "";
	}

	async function confirm(page: Page, reference: string, transaction: string): Promise<void> {
		await topUpOf(page, reference).getByRole("button", { name: "Confirm" }).click();
		await page.getByLabel("Bank transaction reference").fill(transaction);
		await page
			.getByRole("dialog")
			.getByRole("button", { name: /^Confirm \$/ })
			.click();
	}

	test("the customer's open page shows a confirmed top-up, a rejected one with reason", async () => {
		await credit.goto("/credit");
		const [good, bad] = [await announce("250"), await announce("300")];
		await office.goto("/operator/top-ups");
		await confirm(office, good, "BANK-1");
		await topUpOf(office, good).waitFor({ state: "detached" });
		await topUpOf(office, bad).getByRole("button", { name: "Reject" }).click();
		await office.getByLabel("Reason").fill("Only EUR 30 arrived, sent back");
		await picture(office, "operator-1-reject");
		await office.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
		await office.getByText("No pending top-ups.").waitFor();

		await available().getByText("$250.00").waitFor();
		await topUpOf(credit, good).getByText("Confirmed").waitFor();
		await topUpOf(credit, bad).getByText("Rejected").waitFor();
		await topUpOf(credit, bad).getByText("Only EUR 30 arrived, sent back").waitFor();
		await picture(credit, "operator-2-rejected");
		await ledgerThatAddsUp(credit, { what: "Top-up", lines: 1 });
		expect(await call()).toBe("answered");
	});

	test.if(LONG)("a bank transaction cannot be credited twice", async () => {
		const reference = await announce("100");
		await office.goto("/operator/top-ups");
		await confirm(office, reference, "BANK-1");
		await office.getByText("This transaction has already paid another top-up.").waitFor();
		expected.push("409");
		await office.getByLabel("Bank transaction reference").fill("BANK-2");
		await office.getByRole("dialog").getByRole("button", { name: "Confirm $100.00" }).click();
		await office.getByText("No pending top-ups.").waitFor();
	});

	test.if(LONG)("a large top-up requires two operators with the same transaction", async () => {
		const reference = await announce("5000");
		await office.goto("/operator/top-ups");
		await confirm(office, reference, "BANK-3");
		await office.getByText(/needs a second operator/).waitFor();
		await picture(office, "operator-3-second-look");
		await office.getByRole("button", { name: "Done" }).click();
		await topUpOf(office, reference).getByText("Second review").waitFor();
		await confirm(office, reference, "BANK-3");
		await office.getByText("A second operator must confirm this top-up.").waitFor();
		await office.getByRole("button", { name: "Cancel" }).click();

		await colleague.goto("/operator/top-ups");
		await confirm(colleague, reference, "BANK-4");
		await colleague.getByText("The first operator recorded another transaction.").waitFor();
		expected.push("409", "409");
		await credit.reload();
		await topUpOf(credit, reference).getByText("Pending verification").waitFor();
		await available().getByText("$350.00").waitFor();
		await colleague.getByLabel("Bank transaction reference").fill("BANK-3");
		await colleague.getByRole("dialog").getByRole("button", { name: "Confirm $5,000.00" }).click();
		await colleague.getByText("No pending top-ups.").waitFor();
		await credit.reload();
		await available().getByText("$5,350.00").waitFor();
	});

	test("suspending an account refuses calls with 403 until it is lifted", async () => {
		await walk(office, "/operator/accounts");
		await office.getByRole("link", { name: customer.email }).click();
		await office.getByRole("button", { name: "Suspend" }).click();
		await office.getByLabel("Reason").fill("unpaid invoice");
		await office.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
		await office.getByText(/In effect on all instances since/).waitFor();
		expect(await call()).toBe("403 account_suspended");
		await office.getByRole("button", { name: "Lift the suspension" }).waitFor();
		await picture(office, "operator-4-suspended");
		await credit.goto("/overview");
		await credit.getByText(/This account is suspended/).waitFor();

		await office.getByRole("button", { name: "Lift the suspension" }).click();
		await office.getByLabel("Reason").fill("invoice paid");
		await office.getByRole("dialog").getByRole("button", { name: "Lift the suspension" }).click();
		await office.getByRole("button", { name: "Suspend" }).waitFor();
		expect(await call()).toBe("answered");
		await credit.goto("/credit");
		await available().waitFor();
		expect(await credit.getByText(/This account is suspended/).count()).toBe(0);
	});

	test.if(LONG)("a large adjustment requires a second operator", async () => {
		await office.getByRole("button", { name: "Adjust the credit" }).click();
		await office.getByLabel("Amount in USD").fill("-6000");
		await office.getByLabel("Reason").fill("a slip of the keyboard");
		await office.getByRole("button", { name: "Adjust", exact: true }).click();
		await office.getByText(/needs a second operator/).waitFor();
		await picture(office, "operator-5-adjustment-waits");
		await office.getByRole("button", { name: "Done" }).click();

		await walk(colleague, "/operator");
		const row = colleague.getByRole("table", { name: "Adjustments" }).locator("tbody tr", { hasText: customer.email });
		await row.getByRole("button", { name: "Confirm" }).click();
		await colleague
			.getByRole("dialog")
			.getByRole("button", { name: /^Confirm/ })
			.click();
		await colleague.getByText("The available credit does not cover this amount.").waitFor();
		expected.push("409");
		await picture(colleague, "operator-5-too-much");
		await colleague.getByRole("button", { name: "Cancel" }).click();
		await row.getByRole("button", { name: "Reject" }).click();
		await colleague.getByLabel("Reason").fill("a slip indeed");
		await colleague.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
		await row.waitFor({ state: "detached" });
	});

	test("an adjustment repeated after a lost answer is booked once", async () => {
		await available()
			.getByText(LONG ? "$5,350.00" : "$250.00")
			.waitFor();
		const lose = async (route: Route) => {
			await route.fetch();
			await route.abort("connectionreset");
		};
		await office.route(/\/adjust$/, lose, { times: 1 });
		const adjust = async () => {
			await office.getByRole("button", { name: "Adjust the credit" }).click();
			await office.getByLabel("Amount in USD").fill("12.5");
			await office.getByLabel("Reason").fill("goodwill for the outage");
			await office.getByRole("button", { name: "Adjust", exact: true }).click();
		};
		await adjust();
		await office.getByText("The service could not be reached.").waitFor();
		await office.getByRole("button", { name: "Cancel" }).click();
		await office.getByRole("dialog").waitFor({ state: "detached" });
		expect([tabs[1]?.complaints.splice(-1).length, tabs[1]?.failures.splice(-1).length]).toEqual([1, 1]);
		await adjust();
		await office.getByRole("dialog").waitFor({ state: "detached" });
		await office.getByRole("table", { name: "Ledger" }).getByText("goodwill for the outage").waitFor();

		await available()
			.getByText(LONG ? "$5,362.50" : "$262.50")
			.waitFor();
		await credit.getByRole("table", { name: "Ledger" }).getByText("goodwill for the outage").waitFor();
		await picture(credit, "operator-6-ledger");

		await office.getByRole("link", { name: "Events of this account" }).click();
		const lineOf = (act: string) => log().locator("tbody tr", { hasText: act });
		await lineOf("Credit adjusted")
			.getByText(/usd: 12\.50, reason: goodwill for the outage/)
			.waitFor();
		await lineOf("Account suspended")
			.getByText(/reason: unpaid invoice/)
			.waitFor();
		await picture(office, "operator-7-audit");
		expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	});

	test.if(LONG)("the audit log filters by action", async () => {
		await walk(office, "/operator/audit?action=topup.confirm");
		await log()
			.locator("tbody tr", { hasText: colleagueEmail })
			.getByText(/transactionReference: BANK-3/)
			.waitFor();
		await office.getByRole("combobox", { name: "Action" }).fill("adjusted");
		await office.getByRole("option", { name: "Credit adjusted" }).click();
		await office.waitForURL("**/operator/audit?action=account.adjust");
		await log().locator("tbody tr", { hasText: "Top-up confirmed" }).waitFor({ state: "detached" });
	});

	test.if(LONG)("a management key works until it is revoked, shows its secret once", async () => {
		await walk(office, "/operator/management-keys");
		await office.getByRole("button", { name: "Create a management key" }).first().click();
		await office.getByLabel("Name").fill("terraform");
		await office.getByLabel("accounts:read").check();
		await office.getByRole("button", { name: "Create", exact: true }).click();
		const management = (await office.getByTestId("secret").textContent()) ?? "";
		expect(management).toStartWith("tgm_");
		await storeSecret(office);
		const status = async () => (await service.get("/v1/management/accounts", management)).status;
		expect(await status()).toBe(200);
		const row = office.getByRole("table", { name: "Management keys" }).locator("tbody tr", { hasText: "terraform" });
		await row.getByText("Active").waitFor();
		expect(await office.content()).not.toContain(management);
		await row.getByRole("button", { name: "Revoke terraform" }).click();
		await office.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
		await row.getByText("Revoked").waitFor();
		expect(await status()).toBe(401);
	});

	test("a customer gets no operator page", async () => {
		await walk(credit, "/operator/accounts");
		await credit.getByRole("heading", { name: "Page not found" }).waitFor();
		await credit.getByText("This page does not exist.").waitFor();
	});

	test("the browsers log no error, only the expected requests fail", () => {
		expect(tabs.flatMap((tab) => tab.complaints)).toEqual([]);
		expect(tabs.flatMap((tab) => tab.failures).map((failure) => failure.slice(0, 3))).toEqual(expected);
	});
});
