import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { mailedLink, operator, signedUp, topUp } from "../../console/person.ts";
import { temporaryFolder } from "../../support/at-end.ts";
import { reply } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";
import { hasChromium } from "../chromium.ts";
import { picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

setDefaultTimeout(180_000);
/** The address of who looks at the page, and not of the account's members. */
const VIEWER = /\/api\/console\/me(\?|$)/;
/** What signing out, or a change of account, asks. */
const UNREACHED = /\/api\/(auth\/sign-out|console\/me(\?|$)|console\/public\/config)/;

const folder = temporaryFolder();
const { service, upstream, open } = await withScene();
const [owner, friend] = [await signedUp(service), await signedUp(service)];
await owner.send("PATCH", "/api/console/account", { name: "Alder Works" });
await friend.send("PATCH", "/api/console/account", { name: "Birch Works" });
await friend.send("POST", "/api/console/invitations", { email: owner.email, role: "admin" });
const token = new URL(await mailedLink(owner)).searchParams.get("token");
await owner.send("POST", "/api/console/invitations/accept", { token });
await topUp(owner, await operator(service));
const { page, context } = await open({ person: owner });

describe.skipIf(!hasChromium)("a page that goes on being looked at", () => {
	const heading = (name: string) => page.getByRole("heading", { name, exact: true, level: 1 });
	const walkTo = async (name: string) => {
		await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true }).click();
		await heading(name).waitFor();
	};
	const name = () => page.getByLabel("Name of the account");
	async function switchTo(name: string): Promise<void> {
		await page.getByRole("button", { name: /^Account: / }).click();
		await page.getByRole("menuitem", { name }).click();
		await page.getByRole("button", { name: `Account: ${name}` }).waitFor();
	}

	test("the log is read anew by its button, whatever time it shows", async () => {
		for (const time of ["", "?range=24h"]) {
			const isRead = page.waitForResponse(/\/api\/console\/requests\?/);
			await walk(page, `/requests${time}`);
			await isRead;
			await page.getByText("No requests in this time.").waitFor();
			const again = page.waitForRequest(/\/api\/console\/requests\?/);
			await page.getByRole("button", { name: "Reload" }).click();
			await again;
		}
	});

	test("a link whose time is none shows the page with its usual time", async () => {
		await walk(page, "/usage?from=1790000000000&to=17900abc");
		await page.getByText("No usage in this time.").waitFor();
		expect(await page.getByLabel("Time").first().inputValue()).toBe("7 days");
	});

	test("billing details that were saved are there when the settings are opened again", async () => {
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

	test("a key whose end has a year too many digits long is not made without an end", async () => {
		await walk(page, "/keys?create=1");
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("ends");
		await form.getByLabel("Expires").fill("20310-05-01T12:30");
		await form.getByRole("button", { name: "Create" }).click();
		await form.getByLabel("Expires").fill("2031-05-01T12:30");
		await form.getByRole("button", { name: "Create" }).click();
		await page.getByTestId("secret").waitFor();
		const { body } = await owner.get(`/api/console/keys?account=${owner.accountId}`);
		expect(body.items.map((key: { expiresAtMs: number | null }) => key.expiresAtMs)).toEqual([
			Date.parse("2031-05-01T10:30:00Z"),
		]);
		await page.getByLabel("I have stored it").check();
		await page.getByRole("button", { name: "Done" }).click();
		await page.getByRole("link", { name: "ends" }).waitFor();
	});

	test("a page that cannot be drawn says so in its place, and the others are still there", async () => {
		const strange = { items: [{ id: "key_of_another_version" }], next: null };
		await page.route(/\/api\/console\/keys\?/, (route) => route.fulfill({ json: strange }));
		await page.goto("/keys");
		await page.getByText("This page has a fault of its own. Reload it.").waitFor();
		await page.unroute(/\/api\/console\/keys\?/);
		await walkTo("Credit");
		await page.getByRole("button", { name: "Get the reference" }).waitFor();
		await page.goto("/keys");
		await page.getByRole("link", { name: "ends" }).waitFor();
	});

	test("what makes a secret is neither closed nor left while it is on its way, and a session that ends meanwhile ends the page afterwards", async () => {
		const made = await owner.send("POST", "/api/console/keys", { name: "slow", capUsd: "5" });
		await walk(page, `/keys/${made.body.key.id}`);
		const answer = Promise.withResolvers<void>();
		await page.route(/\/rotate\?/, async (route) => {
			await answer.promise;
			await route.continue();
		});
		await page.getByRole("button", { name: "Rotate" }).click();
		const asked = page.waitForRequest(/\/rotate\?/);
		await page.getByRole("button", { name: "Make the replacement" }).click();
		await asked;
		await page.keyboard.press("Escape");
		await page.mouse.click(3, 3);
		await page.goBack();
		answer.resolve();
		await page.getByTestId("secret").waitFor();
		await page.getByLabel("I have stored it").check();
		await page.getByRole("button", { name: "Done" }).click();

		await walkTo("Keys");
		await page.getByRole("button", { name: "Create a key" }).first().click();
		await page.getByRole("dialog").getByLabel("Name").fill("the last one");
		await page.getByRole("dialog").getByLabel("Cap in USD").fill("5");
		const ended = { error: { message: "Sign in first.", code: "session_required" } };
		await page.route(/\/api\/console\/keys\?/, async (route) =>
			route.request().method() === "GET" ? route.fulfill({ status: 401, json: ended }) : route.continue(),
		);
		const isEnded = page.waitForResponse((response) => response.status() === 401);
		await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
		await isEnded;
		await page.getByTestId("secret").waitFor();
		await page.unroute(/\/api\/console\/keys\?/);
		await page.getByLabel("I have stored it").check();
		await page.getByRole("button", { name: "Done" }).click();
		await heading("Sign in").waitFor();
	});

	test("the secret of a webhook stays until it is stored, also where a notice is sent again meanwhile", async () => {
		const failed = { batchId: "evt_1", type: "credit.low", channel: "webhook", email: null, state: "failed" };
		const row = { ...failed, answer: 500, problem: null, attempts: 1, triedAtMs: 0, nextAtMs: null };
		await page.route(/\/api\/console\/batch-notices/, async (route) => {
			const { pathname } = new URL(route.request().url());
			if (pathname.endsWith("/replay")) return route.fulfill({ json: {} });
			const answer = await (await route.fetch()).json();
			await route.fulfill({ json: { ...answer, items: [row] } });
		});
		await page.goto("/settings");
		const panel = page.getByRole("region", { name: "Notices" });
		await panel.getByLabel("Webhook", { exact: true }).fill("https://example.com/notices");
		await panel.getByRole("button", { name: "Save" }).click();
		await panel.getByText("it is shown this once").waitFor();
		const isRead = page.waitForResponse(
			(answer) => /batch-notices\?/.test(answer.url()) && answer.request().method() === "GET",
		);
		await panel.getByRole("button", { name: "Send again" }).click();
		await isRead;
		await panel.getByRole("button", { name: "I have stored it" }).click();
		await panel.getByRole("button", { name: "New secret" }).waitFor();
		await page.unroute(/\/api\/console\/batch-notices/);
	});

	test("a key whose answer was lost is not made twice: its secret is shown as the button is pressed again", async () => {
		await walk(page, "/keys?create=1");
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("lost once");
		await form.getByLabel("Cap in USD").fill("5");
		// The list behind the dialog has the same address, and may be read later than this.
		await page.route(/\/api\/console\/keys\?/, async (route) => {
			if (route.request().method() === "GET") return route.continue();
			await route.fetch();
			await route.abort("connectionreset");
		});
		await form.getByRole("button", { name: "Create" }).click();
		await form.getByText("The service could not be reached.").waitFor();
		await page.unroute(/\/api\/console\/keys\?/);
		await form.getByRole("button", { name: "Create" }).click();
		const secret = (await page.getByTestId("secret").textContent()) ?? "";
		const { body } = await owner.get(`/api/console/keys?account=${owner.accountId}`);
		const made = body.items.filter(({ name }: { name: string }) => name === "lost once");
		expect(made.map(({ lastFour }: { lastFour: string }) => lastFour)).toEqual([secret.slice(-4)]);
		await page.getByLabel("I have stored it").check();
		await page.getByRole("button", { name: "Done" }).click();
	});

	test("a batch that was not answered is the same one after its dialog was cancelled", async () => {
		await owner.send("POST", "/api/console/keys", { name: "nightly", capUsd: "5" });
		await walk(page, "/batches");
		const tokens: (string | null)[] = [];
		await page.route(/\/batch-start\?/, async (route) => {
			tokens.push(new URL(route.request().url()).searchParams.get("token"));
			await route.abort("connectionreset");
		});
		const line = { custom_id: "1", method: "POST", url: "/v1/chat/completions", body: {} };
		const file = join(folder, "night.jsonl");
		writeFileSync(file, JSON.stringify(line));
		for (const _ of [1, 2]) {
			await page.getByRole("button", { name: "Start a batch" }).first().click();
			await page.locator("input[type=file]").setInputFiles(file);
			// The page may still know the keys that there were before, and by another key it is another batch.
			const key = page.getByRole("dialog").getByLabel("Key", { exact: true });
			await waitFor(async () => (await key.inputValue()).startsWith("nightly"), "the newest key to be chosen");
			await page.getByRole("button", { name: "Start", exact: true }).click();
			await page.getByText("The service could not be reached.").waitFor();
			await page.getByRole("button", { name: "Cancel" }).click();
			await page.getByRole("dialog").waitFor({ state: "detached" });
		}
		expect([tokens.length, new Set(tokens).size]).toEqual([2, 1]);
	});

	test("who leaves the playground leaves the answer that is on its way as well: it is not charged on", async () => {
		await owner.send("POST", "/api/console/keys", { name: "played with", capUsd: "5" });
		upstream.next(reply().text("One word after the other, and no end.").stallAfter(3));
		await walk(page, "/playground");
		await page.getByLabel("Your message").fill("Say hello");
		await page.getByRole("button", { name: "Send" }).and(page.locator(":enabled")).click();
		await page.getByText("One word").waitFor();
		await walkTo("Keys");
		await upstream.waitForAbort(upstream.requests.length);
	});

	test("what is said of a batch's file is said of the one that stands there, however long another one took to be read", async () => {
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

	test("of two keys with one name the chart hides the one that is clicked", async () => {
		const sums = {
			requests: 1,
			promptTokens: 1,
			cachedTokens: 0,
			completionTokens: 1,
			reasoningTokens: 0,
			costNanoUsd: 1,
			meanMs: 1,
		};
		const groups = ["key_1", "key_2"].map((id) => ({ id, label: "twin", ...sums }));
		const time = { bucketMs: 86_400_000, fromMs: Date.now() - 86_400_000, toMs: Date.now() };
		await page.route(/\/api\/console\/usage\?/, (route) =>
			route.fulfill({ json: { ...time, groups, points: [], total: sums } }),
		);
		await walk(page, "/usage?group=key");
		const names = page.getByRole("group", { name: "Shown by" }).getByRole("button", { name: "twin" });
		await names.first().click();
		const pressed = () => Promise.all([0, 1].map((nth) => names.nth(nth).getAttribute("aria-pressed")));
		expect(await pressed()).toEqual(["false", "true"]);
		await page.unroute(/\/api\/console\/usage\?/);
	});

	test("what is under way is not said to be cancelled: its dialog stays until it is done", async () => {
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

	test("a step back from what was made does not ask for another one", async () => {
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
		await page.getByLabel("I have stored it").check();
		await page.getByRole("button", { name: "Done" }).click();
		await page.goBack();
		await heading("Keys").waitFor();
		expect(page.url()).not.toContain("create");
		expect(await page.getByRole("dialog").count()).toBe(0);
	});

	test("a step back to another key ends what was being done with this one", async () => {
		const made = await owner.send("POST", "/api/console/keys", { name: "twin", capUsd: "5" });
		const path = `/keys/${made.body.key.id}`;
		await owner.send("POST", `/api/console${path}/rotate`, { graceMs: 3_600_000, token: "0".repeat(32) });
		await walk(page, path);
		await page.locator("dt", { hasText: "Replaced by" }).locator("xpath=..").getByRole("link").click();
		await page.waitForURL((url) => url.pathname !== path);
		await page.getByRole("button", { name: "Revoke" }).click();
		await page.getByRole("dialog").getByRole("textbox").fill("twin");
		await page.goBack();
		await page.waitForURL(`**${path}`);
		await page.getByText("Being replaced").waitFor();
		await page.getByRole("dialog").waitFor({ state: "detached" });
	});

	test("with another account the forms are that one's", async () => {
		await walk(page, "/settings");
		await name().waitFor();
		await switchTo("Birch Works");
		expect(await name().inputValue()).toBe("Birch Works");
		await switchTo("Alder Works");
	});

	test("it says so where signing out, or another account, was not reached, and stays what it was", async () => {
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

	test("who came by a link that names an account can choose another", async () => {
		await page.goto(`/settings?account=${owner.accountId}`);
		await page.getByRole("button", { name: "Account: Alder Works" }).waitFor();
		await switchTo("Birch Works");
	});

	test("who came by a link that names an account stays in it as something is saved", async () => {
		await page.goto(`/credit?account=${friend.accountId}`);
		await page.getByRole("button", { name: "Account: Birch Works" }).waitFor();
		await page.evaluate((id) => localStorage.setItem("tollgate-account", id), owner.accountId);
		await walkTo("Settings");
		await name().fill("Birch Works AG");
		await name().press("Enter");
		await page.getByRole("button", { name: "Account: Birch Works AG" }).waitFor();
	});

	test("it does not say that it copied what the browser refused to", async () => {
		await page.addInitScript(() => {
			navigator.clipboard.writeText = () => Promise.reject(new DOMException("", "NotAllowedError"));
			document.execCommand = () => false;
		});
		await page.goto("/credit");
		await page.getByRole("button", { name: "Get the reference" }).click();
		await page.getByText("Recorded as pending.").waitFor();
		await page.getByRole("button", { name: "Copy the reference" }).first().click();
		await page.getByRole("button", { name: "The browser does not let pages copy." }).waitFor();
		await picture(page, "copy-refused");
	});

	test("where another tab signs somebody else in it shows that one, and nothing of the former", async () => {
		const cookiesOf = (person: typeof owner) =>
			[...person.cookies].map(([name, value]) => ({ name, value, url: service.url }));
		await walk(page, "/settings");
		await page.getByText("(this one)").waitFor();
		await context.addCookies(cookiesOf(friend));
		const other = await context.newPage();
		await other.goto("/settings");
		await page.getByRole("button", { name: `You: ${friend.email}` }).waitFor();
		await page.getByText(`Signed in as ${friend.email}.`).waitFor();
		await context.addCookies(cookiesOf(owner));
		await other.reload();
		await page.getByRole("button", { name: `You: ${owner.email}` }).waitFor();
		await other.close();
	});

	test("of two readings of the viewer the later one holds, and what was sent before it and is answered late ends no session", async () => {
		await page.goto("/settings");
		await name().waitFor();
		const rename = (to: string) => owner.send("PATCH", `/api/console/account?account=${owner.accountId}`, { name: to });
		const readAnew = () => page.evaluate(() => void dispatchEvent(new Event("tollgate:account-gone")));
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
		const late = Promise.all([
			page.waitForResponse(VIEWER),
			page.waitForResponse((response) => response.status() === 401),
		]);
		earlier?.resolve();
		keys?.resolve();
		await late;
		await page.unroute(/\/api\/console\/keys\?/);
		await walkTo("Keys");
		await account("Alder Works Twice").waitFor();
		await rename("Alder Works");
	});

	test("its feed is taken up again after an answer that was none", async () => {
		const feed = /\/api\/console\/live/;
		// The page before has a feed as well, which it may take up in this moment.
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
