import { describe, expect, test } from "bun:test";
import type { Page, Route } from "playwright-core";
import { operator, signedUp } from "../../console/person.ts";
import { testsMayTake } from "../../support/at-end.ts";
import { hasChromium } from "../chromium.ts";
import { readConsistentLedger } from "../screen-ledger.ts";
import { callWith, MODEL, picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

testsMayTake(180_000);

const { service, open } = await withScene();
const customer = await signedUp(service);
const { secret } = (await customer.send("POST", "/api/console/keys", { name: "production" })).body;
/** The customer's credit page, and an operator's pages. */
const tabs = [await open({ person: customer }), await open({ person: await operator(service) })];
const [credit, office] = tabs.map(({ page }) => page) as [Page, Page];

describe.skipIf(!hasChromium)("an operator and a customer in a browser", () => {
	const available = () => credit.locator(".stat", { hasText: "for new requests" });
	const topUpOf = (page: Page, text: string) =>
		page.getByRole("table", { name: "Top-ups" }).locator("tbody tr", { hasText: text });
	const log = () => office.getByRole("table", { name: "Audit log" });
	const call = () => callWith(service.url, secret);

	/** Announces a transfer as the customer; returns its reference. */
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

	test("the customer's open page shows a top-up's confirmation or reason of rejection", async () => {
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
		await readConsistentLedger(credit, { what: "Top-up", lines: 1 });
		expect(await call()).toBe("answered");
	});

	test("calls of a suspended account get 403 until the suspension is lifted", async () => {
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

	test("a credit adjustment repeated after a lost response is booked once", async () => {
		await available().getByText("$250.00").waitFor();
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

		await available().getByText("$262.50").waitFor();
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

	test("agreed rates entered in a dialog are shown to operator and customer", async () => {
		await walk(office, `/operator/accounts/${customer.accountId}`);
		await office.getByText("List prices").waitFor();
		await office.getByRole("button", { name: "Prices" }).click();
		await office.getByRole("combobox", { name: "Model" }).click();
		await office.getByRole("option", { name: MODEL }).click();
		await office.getByLabel("Own rate in USD: Output").fill("1.5");
		await office.getByLabel("Reason").fill("contract 7");
		await picture(office, "operator-8-prices");
		await office.getByRole("button", { name: "Agree", exact: true }).click();
		await office.getByText(/In effect on all instances since/).waitFor();
		await office.getByText(/Output, per million tokens \$1\.50/).waitFor();
		await picture(office, "operator-9-agreed");
		await credit.goto(`/models/${MODEL}`);
		await credit.getByText("Agreed with your account.").waitFor();
		await credit.locator(".facts", { hasText: "$1.50" }).waitFor();
		await picture(credit, "operator-10-own-rates");
	});

	test("a customer cannot open operators' pages", async () => {
		await walk(credit, "/operator/accounts");
		await credit.getByRole("heading", { name: "Page not found" }).waitFor();
		await credit.getByText("This page does not exist.").waitFor();
	});

	test("the browsers log no error, and no request fails", () => {
		expect(tabs.flatMap((tab) => tab.complaints)).toEqual([]);
		expect(tabs.flatMap((tab) => tab.failures)).toEqual([]);
	});
});
