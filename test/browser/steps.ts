import type { Locator, Page } from "playwright-core";

/** What somebody did by hand to get somewhere. */
export interface Steps {
	clicks: number;
	fields: number;
	/** Of the console, as often as another one was shown. */
	pages: number;
	/** How often he had to go elsewhere: to his mailbox, to a payment page. */
	left: number;
}

/** `home`: the console's address. What is done by what this gives is counted. */
export function countSteps(page: Page, home: string) {
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
		/** A link of a mail, which is read elsewhere. */
		async followMail(link: string): Promise<void> {
			steps.left += 1;
			await page.goto(link);
		},
	};
}
