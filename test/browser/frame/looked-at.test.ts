import { describe, expect, test } from "bun:test";
import { testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { hasChromium, storeSecret } from "../chromium.ts";
import { picture } from "../stage.ts";
import { walk } from "../windows.ts";
import { withTwoAccounts } from "./two-accounts.ts";

testsMayTake(180_000);
/** Requests that the tests let fail: signing out, and those that a switch of the account sends. */
const UNREACHED = /\/api\/(auth\/sign-out|console\/me(\?|$)|console\/public\/config)/;
/** The request for the data of the signed-in person. */
const VIEWER = /\/api\/console\/me(\?|$)/;

/** Only in the long form; in the short form `left-open.test.ts` tests money, secrets and accounts. */
const isRun = LONG && hasChromium;
const house = isRun ? await withTwoAccounts() : ({} as Awaited<ReturnType<typeof withTwoAccounts>>);
const { owner, page, heading, walkTo, switchTo, name } = house;

describe.skipIf(!isRun)("an open page of the console", () => {
	test("reads the request log again on a click on Reload", async () => {
		for (const time of ["", "?range=24h"]) {
			const isRead = page.waitForResponse(/\/api\/console\/requests\?/);
			await walk(page, `/requests${time}`);
			await isRead;
			await page.getByText("No requests in this time range.").waitFor();
			const again = page.waitForRequest(/\/api\/console\/requests\?/);
			await page.getByRole("button", { name: "Reload" }).click();
			await again;
		}
	});

	test("shows the default range for an invalid date range in the URL", async () => {
		await walk(page, "/usage?from=1790000000000&to=17900abc");
		await page.getByText("No usage in this time range.").waitFor();
		expect(await page.getByLabel("Time").first().inputValue()).toBe("7 days");
	});

	test("shows saved billing details when the settings reopen", async () => {
		await walk(page, "/settings");
		await page.getByLabel("Company", { exact: true }).fill("Alder Works GmbH");
		const form = page.getByRole("region", { name: "Receipts and statements" });
		await form.getByRole("button", { name: "Save" }).click();
		await form.getByText("Saved.").waitFor();
		await walkTo("Keys");
		await walkTo("Settings");
		const company = page.getByLabel("Company", { exact: true });
		await company.waitFor();
		expect(await company.inputValue()).toBe("Alder Works GmbH");
	});

	test("ignores a batch file's check that ends after the user has chosen another file", async () => {
		await walk(page, "/batches");
		await page.getByRole("button", { name: "Start a batch" }).first().click();
		await page.evaluate(() => {
			const read = File.prototype.text;
			const other = new Promise<void>((resolve) => addEventListener("other-is-read", () => resolve(), { once: true }));
			File.prototype.text = async function (this: File) {
				if (this.name === "large.jsonl") await other;
				const text = await read.call(this);
				if (this.name !== "large.jsonl") setTimeout(() => dispatchEvent(new Event("other-is-read")));
				else setTimeout(() => document.body.setAttribute("data-read", ""));
				return text;
			};
		});
		const file = (name: string, lines: number) => {
			const line = (id: number) => ({ custom_id: `${id}`, method: "POST", url: "/v1/chat/completions", body: {} });
			const text = Array.from({ length: lines }, (_, id) => JSON.stringify(line(id))).join("\n");
			return { name, mimeType: "application/jsonl", buffer: Buffer.from(text) };
		};
		for (const [name, lines] of [["large.jsonl", 20] as const, ["small.jsonl", 1] as const])
			await page.locator("input[type=file]").setInputFiles([file(name, lines)]);
		await page.locator("body[data-read]").waitFor();
		await page.getByText("1 request to /v1/chat/completions").waitFor();
	});

	test("keeps a dialog open until the dialog's request has ended", async () => {
		await walk(page, "/projects?create=1");
		const answer = Promise.withResolvers<void>();
		await page.route(/\/api\/console\/projects\?/, async (route) => {
			if (route.request().method() === "POST") await answer.promise;
			await route.continue();
		});
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("Elders");
		const asked = page.waitForRequest((request) => request.method() === "POST");
		await form.getByRole("button", { name: "Create" }).click();
		await asked;
		await page.keyboard.press("Escape");
		expect(await form.getByRole("button", { name: "Cancel" }).isDisabled()).toBe(true);
		expect(await form.getByLabel("Name").inputValue()).toBe("Elders");
		answer.resolve();
		await heading("Elders").waitFor();
	});

	test("does not reopen the creation dialog when the user goes back", async () => {
		await walk(page, "/projects?create=1");
		await page.getByRole("dialog").getByLabel("Name").fill("Alders");
		await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
		await heading("Alders").waitFor();
		await page.goBack();
		await heading("Projects").waitFor();
		expect(page.url()).not.toContain("create");
		await walk(page, "/keys?create=1");
		await page.getByRole("dialog").getByLabel("Name").fill("once");
		await page.getByRole("dialog").getByLabel("Cap in USD").fill("5");
		await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
		await storeSecret(page);
		await page.goBack();
		await heading("Keys").waitFor();
		expect(page.url()).not.toContain("create");
		expect(await page.getByRole("dialog").count()).toBe(0);
	});

	test("shows an error in place of a page that fails, while other pages work", async () => {
		const strange = { items: [{ id: "key_of_another_version" }], next: null };
		await page.route(/\/api\/console\/keys\?/, (route) => route.fulfill({ json: strange }));
		await page.goto("/keys");
		await page.getByText("Something went wrong on this page. Reload it.").waitFor();
		await page.unroute(/\/api\/console\/keys\?/);
		await walkTo("Credit");
		await page.getByRole("button", { name: "Create the top-up" }).waitFor();
		await page.goto("/keys");
		await heading("Keys").waitFor();
	});

	test("shows the newly chosen account in all forms", async () => {
		await walk(page, "/settings");
		await name().waitFor();
		await switchTo("Birch Works");
		expect(await name().inputValue()).toBe("Birch Works");
		await switchTo("Alder Works");
	});

	test("shows an error after a failed sign-out or account switch", async () => {
		await name().waitFor();
		await page.route(UNREACHED, (route) => route.abort("connectionrefused"));
		const side = page.getByRole("navigation", { name: "Main" });
		await page.getByRole("button", { name: /^You: / }).click();
		await page.getByRole("menuitem", { name: "Sign out" }).click();
		await side.getByText("The service could not be reached.").waitFor();
		await page.getByRole("button", { name: /^Account: / }).click();
		await page.getByRole("menuitem", { name: "Birch Works" }).click();
		await side.getByText("The service could not be reached.").nth(1).waitFor();
		await page.unroute(UNREACHED);
		await name().fill("Alder Works Ltd");
		await name().press("Enter");
		await page.getByRole("button", { name: "Account: Alder Works Ltd" }).waitFor();
		await name().fill("Alder Works");
		await name().press("Enter");
		await page.getByRole("button", { name: "Account: Alder Works", exact: true }).waitFor();
	});

	test("switches to another account although the URL names the previous account", async () => {
		await page.goto(`/settings?account=${owner.accountId}`);
		await page.getByRole("button", { name: "Account: Alder Works" }).waitFor();
		await switchTo("Birch Works");
		await switchTo("Alder Works");
	});

	test("shows a message if the browser refuses to copy", async () => {
		await page.addInitScript(() => {
			navigator.clipboard.writeText = () => Promise.reject(new DOMException("", "NotAllowedError"));
			document.execCommand = () => false;
		});
		await page.goto("/credit");
		await page.getByRole("button", { name: "Create the top-up" }).click();
		await page.getByText("Your top-up is pending.").waitFor();
		await page.getByRole("button", { name: "Copy the reference" }).first().click();
		await page.getByRole("button", { name: "The browser blocked copying." }).waitFor();
		await picture(page, "copy-refused");
	});

	test("keeps the session after a late 401, and applies the latest check of the session", async () => {
		await page.goto("/settings");
		await name().waitFor();
		const rename = (to: string) => owner.send("PATCH", `/api/console/account?account=${owner.accountId}`, { name: to });
		const readAnew = () => page.evaluate(() => void dispatchEvent(new Event("tollgate:viewer-stale")));
		const [keys, earlier, isRead] = [0, 1, 2].map(() => Promise.withResolvers<void>());
		await page.route(/\/api\/console\/keys\?/, async (route) => {
			await keys?.promise;
			await route.fulfill({ status: 401, json: { error: { message: "Please sign in.", code: "session_required" } } });
		});
		await page.route(
			VIEWER,
			async (route) => {
				const response = await route.fetch();
				isRead?.resolve();
				await earlier?.promise;
				await route.fulfill({ response });
			},
			{ times: 1 },
		);
		const side = page.getByRole("navigation", { name: "Main" });
		const asked = page.waitForRequest(/\/api\/console\/keys\?/);
		await side.getByRole("link", { name: "Keys", exact: true }).click();
		await asked;
		await side.getByRole("link", { name: "Settings", exact: true }).click();
		await name().fill("Alder Works Once");
		await name().press("Enter");
		await isRead?.promise;
		await rename("Alder Works Twice");
		await readAnew();
		const account = (name: string) => page.getByRole("button", { name: `Account: ${name}`, exact: true });
		await account("Alder Works Twice").waitFor();
		const isAnswered = page.waitForResponse(VIEWER);
		earlier?.resolve();
		await isAnswered;
		await page.locator("[data-loading]").waitFor({ state: "detached" });
		expect(await account("Alder Works Twice").count()).toBe(1);
		const isEnded = page.waitForResponse((response) => response.status() === 401);
		keys?.resolve();
		await isEnded;
		await page.unroute(/\/api\/console\/keys\?/);
		await walkTo("Keys");
		await account("Alder Works Twice").waitFor();
		await rename("Alder Works");
	});

	test("reconnects the live feed after an error status", async () => {
		const feed = /\/api\/console\/live/;
		// Leaves the page first: its live feed might otherwise reconnect during the preparation.
		await page.goto("about:blank");
		await page.clock.install();
		let isThere = false;
		await page.route(feed, async (route) => {
			if (isThere) await route.continue();
			else await route.fulfill({ status: 502, body: "" });
		});
		const refused = page.waitForResponse(feed);
		await page.goto("/overview");
		expect((await refused).status()).toBe(502);
		await page.getByText("Connecting…").waitFor();
		isThere = true;
		await page.clock.runFor(60_000);
		await page.getByText("Live", { exact: true }).waitFor();
	});
});
