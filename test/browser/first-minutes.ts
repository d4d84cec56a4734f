import type { Locator, Page } from "playwright-core";
import { mailedLink, PASSWORD } from "../console/person.ts";
import { picture } from "./stage.ts";

/** Numbers of a person's manual steps. */
export interface Steps {
	clicks: number;
	fields: number;
	/** Console pages that were shown. */
	pages: number;
	/** Visits to other sites: the person's mailbox, a payment page. */
	left: number;
}

/** Returns functions that act on the page and count the manual steps. `home`: the console's URL. */
function countSteps(page: Page, home: string) {
	const steps: Steps = { clicks: 0, fields: 0, pages: 0, left: 0 };
	let at = "";
	page.on("framenavigated", (frame) => {
		const { origin, pathname } = new URL(frame.url());
		if (frame !== page.mainFrame() || origin + pathname === at) return;
		at = origin + pathname;
		if (origin === new URL(home).origin) steps.pages += 1;
		else steps.left += 1;
	});
	return {
		steps,
		async click(what: Locator): Promise<void> {
			steps.clicks += 1;
			await what.click();
		},
		async fill(what: Locator, value: string): Promise<void> {
			steps.fields += 1;
			await what.fill(value);
		},
		/** Opens the link in a mail. */
		async followMail(link: string): Promise<void> {
			steps.left += 1;
			await page.goto(link);
		},
	};
}

/** Acts from the landing page to the first streamed answer; returns the manual steps. `paid` confirms the payment. */
export async function signUpToFirstAnswer(
	newcomer: Page,
	visit: { home: string; email: string; payUrl: string; paid: () => Promise<void> },
): Promise<Steps> {
	const { home, email, payUrl, paid } = visit;
	const { steps, click, fill, followMail } = countSteps(newcomer, home);
	const button = (name: string) => newcomer.getByRole("button", { name, exact: true });
	const link = (name: string) => newcomer.getByRole("link", { name, exact: true });
	await newcomer.goto("/");
	await click(newcomer.locator(".hero").getByRole("link", { name: "Sign up" }));
	await fill(newcomer.getByLabel("Name"), "Ada Example");
	await fill(newcomer.getByLabel("Email"), email);
	await fill(newcomer.getByLabel("Password", { exact: true }), PASSWORD);
	await click(button("Sign up"));
	await newcomer.getByRole("heading", { name: "Check your mail" }).waitFor();
	await followMail(await mailedLink({ email }));
	await click(button("Confirm the address"));
	await newcomer.waitForURL("**/overview");
	await click(newcomer.locator(".checklist").getByRole("link", { name: "Top up" }));
	await click(button("Pay by card"));
	await newcomer.waitForURL(`${payUrl}**`);
	await newcomer.getByRole("link", { name: "Pay" }).click();
	await newcomer.waitForURL("**/credit?topup=*&payment=done");
	await paid();
	await newcomer.getByText("Payment confirmed: $100.00 was added to your credit.").waitFor();
	await picture(newcomer, "first-minutes-1-paid");
	await click(link("Create a key"));
	await fill(newcomer.getByRole("dialog").getByLabel("Name"), "first");
	await click(button("Create"));
	await newcomer.getByTestId("secret").waitFor();
	await picture(newcomer, "first-minutes-2-key");
	await click(newcomer.getByLabel("I have stored it"));
	await click(button("Done"));
	await click(newcomer.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Playground" }));
	await fill(newcomer.getByLabel("Your message"), "Say hello");
	await click(button("Send").and(newcomer.locator(":enabled")));
	await newcomer.getByText("Hello.").waitFor();
	await newcomer.getByText(/^\$0\.0/).waitFor();
	await picture(newcomer, "first-minutes-3-answer");
	return steps;
}
