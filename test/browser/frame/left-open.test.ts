import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PASSWORD } from "../../console/person.ts";
import { temporaryFolder, testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { reply } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";
import { hasChromium, storeSecret } from "../chromium.ts";
import { pageProblems } from "../page-problems.ts";
import { OWN_BRAND, picture } from "../stage.ts";
import { settled, setView, walk } from "../windows.ts";
import { withTwoAccounts } from "./two-accounts.ts";

testsMayTake(180_000);

const folder = temporaryFolder();
const house = await withTwoAccounts({
	brand: `${OWN_BRAND}
  terms: { url: "https://acme.example/terms", version: v1 }`,
});
const { service, upstream, owner, friend, page, context, complaints, heading, walkTo, name, signIn } = house;

describe.skipIf(!hasChromium)("pages with an operator's brand in a browser", () => {
	test("pass axe in the brand's colour, and show no other brand's name", async () => {
		await context.clearCookies();
		const found: string[] = [];
		for (const [width, scheme, paths] of [
			[1440, "light", LONG ? ["/", "/sign-up", "/docs"] : ["/"]],
			[360, "dark", LONG ? ["/", "/sign-up", "/docs"] : ["/sign-up"]],
		] as const) {
			await setView(page, [width, scheme]);
			for (const [nth, path] of paths.entries()) {
				// Reloads the page: while colours fade from one theme to the other, their contrast is measured wrongly.
				await (nth === 0 ? page.goto(path) : walk(page, path));
				await settled(page);
				for (const problem of await pageProblems(page)) found.push(`${path}, ${width} ${scheme}: ${problem}`);
				const support = page.locator('a[href="mailto:help@acme.example"]', { hasText: "Support" });
				if (path === "/" && (await support.count()) !== 1) found.push(`${path} has no way to his support`);
				if (await page.getByText("Tollgate").count()) found.push(`${path} names us`);
				await picture(page, `brand-${path.slice(1) || "landing"}-${width}-${scheme}`);
			}
		}
		await signIn(owner);
		expect(found).toEqual([]);
	});

	test("require agreement to the terms before any other page opens", async () => {
		await setView(page, [1440, "light"]);
		await service.db.sql`delete from terms_acceptance`;
		await page.goto("/keys");
		await page.getByRole("heading", { name: "Terms of service" }).waitFor();
		expect(await pageProblems(page)).toEqual([]);
		await picture(page, "brand-terms");
		await page.getByRole("checkbox").check();
		await page.getByRole("button", { name: "Continue" }).click();
		await heading("Keys").waitFor();
		await friend.send("POST", "/api/console/terms", { version: "v1" });
	});
});

describe.skipIf(!hasChromium)("a console page that was left open", () => {
	test("asks for the password before it creates a key without a cap", async () => {
		// Switches animations on, because most people have them on.
		await page.emulateMedia({ reducedMotion: "no-preference" });
		await walk(page, "/keys");
		await page.getByRole("button", { name: "Create a key" }).first().click();
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("left open");
		await service.db.sql`update session set created_at = created_at - interval '16 minutes'`;
		await form.getByRole("button", { name: "Create" }).click();
		const asked = page.getByRole("dialog", { name: "Confirm your password" });
		await asked.getByLabel("Password", { exact: true }).fill("not the password");
		await picture(page, "password-again");
		await asked.getByRole("button", { name: "Continue" }).click();
		await asked.getByText("The password is wrong.").waitFor();
		await asked.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await asked.getByRole("button", { name: "Continue" }).click();
		await page.getByTestId("secret").waitFor();
		await storeSecret(page);
		await page.getByRole("link", { name: "left open" }).waitFor();
	});

	test("sends no invitation if the user cancels the password dialog", async () => {
		await service.db.sql`update session set authenticated_at = null, created_at = created_at - interval '16 minutes'`;
		await walk(page, "/settings");
		await page.getByLabel("Invite by email").fill("guest@example.com");
		await page.getByRole("button", { name: "Invite", exact: true }).click();
		await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
		await page.getByText("Enter your password again to continue.").waitFor();
		expect((await service.db.sql`select 1 from invitation where email = 'guest@example.com'`).length).toBe(0);
		expect(complaints.filter((text) => !/40[03]/.test(text))).toEqual([]);
		await page.emulateMedia({ reducedMotion: "reduce" });
		await service.db.sql`update session set authenticated_at = now()`;
	});
});

describe.skipIf(!hasChromium)("an open page of the console", () => {
	test("creates no key that expires in a year of five digits", async () => {
		await walk(page, "/keys?create=1");
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("ends");
		await form.getByLabel("Expires").fill("20310-05-01T12:30");
		await form.getByRole("button", { name: "Create" }).click();
		await form.getByLabel("Expires").fill("2031-05-01T12:30");
		await form.getByRole("button", { name: "Create" }).click();
		await page.getByTestId("secret").waitFor();
		const { body } = await owner.get(`/api/console/keys?account=${owner.accountId}`);
		const made = body.items.find((key: { name: string }) => key.name === "ends");
		expect(made.expiresAtMs).toBe(Date.parse("2031-05-01T10:30:00Z"));
		await storeSecret(page);
		await page.getByRole("link", { name: "ends" }).waitFor();
	});

	test("keeps the dialog with a key's secret open though the session ends", async () => {
		const made = await owner.send("POST", "/api/console/keys", { name: "slow", capUsd: "5" });
		await walk(page, `/keys/${made.body.key.id}`);
		const answer = Promise.withResolvers<void>();
		await page.route(/\/rotate\?/, async (route) => {
			await answer.promise;
			await route.continue();
		});
		await page.getByRole("button", { name: "Rotate" }).click();
		const asked = page.waitForRequest(/\/rotate\?/);
		await page.getByRole("button", { name: "Create the replacement" }).click();
		await asked;
		await page.keyboard.press("Escape");
		await page.mouse.click(3, 3);
		await page.goBack();
		answer.resolve();
		await page.getByTestId("secret").waitFor();
		await storeSecret(page);

		await walkTo("Keys");
		await page.getByRole("button", { name: "Create a key" }).first().click();
		await page.getByRole("dialog").getByLabel("Name").fill("the last one");
		await page.getByRole("dialog").getByLabel("Cap in USD").fill("5");
		const ended = { error: { message: "Sign in first.", code: "session_required" } };
		await page.route(/\/api\/console\/keys\?/, async (route) =>
			route.request().method() === "GET" ? route.fulfill({ status: 401, json: ended }) : route.continue(),
		);
		await page.route(/\/public\/config/, async (route) => {
			await route.fulfill({ json: { ...(await (await route.fetch()).json()), signedIn: false } });
		});
		const isEnded = page.waitForResponse((response) => response.status() === 401);
		await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
		await isEnded;
		await page.getByTestId("secret").waitFor();
		await page.unroute(/\/api\/console\/keys\?/);
		await storeSecret(page);
		await heading("Sign in").waitFor();
		await page.unroute(/\/public\/config/);
	});

	test("keeps the dialog with a webhook secret open until the secret is stored", async () => {
		const failed = { batchId: "evt_1", type: "credit.low", channel: "webhook", email: null, state: "failed" };
		const row = { ...failed, answer: 500, problem: null, attempts: 1, triedAtMs: 0, nextAtMs: null };
		await page.route(/\/api\/console\/batch-notices/, async (route) => {
			if (new URL(route.request().url()).pathname.endsWith("/replay")) return route.fulfill({ json: {} });
			const answer = await (await route.fetch()).json();
			await route.fulfill({ json: { ...answer, items: [row] } });
		});
		await page.goto("/settings");
		const panel = page.getByRole("region", { name: "Notifications" });
		await panel.getByLabel("Webhook", { exact: true }).fill("https://example.com/notices");
		await panel.getByRole("button", { name: "Save" }).click();
		await panel.getByText("it is not shown again").waitFor();
		const isRead = page.waitForResponse(
			(answer) => /batch-notices\?/.test(answer.url()) && answer.request().method() === "GET",
		);
		await panel.getByRole("button", { name: "Send again" }).click();
		await isRead;
		await panel.getByRole("button", { name: "I have stored it" }).click();
		await panel.getByRole("button", { name: "New secret" }).waitFor();
		await page.unroute(/\/api\/console\/batch-notices/);
	});

	test("shows the same secret if a key's creation is repeated after a lost response", async () => {
		await walk(page, "/keys?create=1");
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("lost once");
		await form.getByLabel("Cap in USD").fill("5");
		// Breaks only the POST that creates the key; the list of keys is a GET of the same URL.
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
		await storeSecret(page);
	});

	test("starts one batch if the start is repeated after a lost response", async () => {
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
			// Waits for the new key, because with another key the test would create another batch.
			const key = page.getByRole("dialog").getByLabel("Key", { exact: true });
			await waitFor(async () => (await key.inputValue()).startsWith("nightly"), "the newest key to be chosen");
			await page.getByRole("button", { name: "Start", exact: true }).click();
			await page.getByText("The service could not be reached.").waitFor();
			await page.getByRole("button", { name: "Cancel" }).click();
			await page.getByRole("dialog").waitFor({ state: "detached" });
		}
		expect([tokens.length, new Set(tokens).size]).toEqual([2, 1]);
	});

	test("aborts an answer that is streaming when the user leaves the playground", async () => {
		await owner.send("POST", "/api/console/keys", { name: "played with", capUsd: "5" });
		upstream.next(reply().text("One word after the other, and no end.").stallAfter(3));
		await walk(page, "/playground");
		await page.getByLabel("Your message").fill("Say hello");
		await page.getByRole("button", { name: "Send" }).and(page.locator(":enabled")).click();
		await page.getByText("One word").waitFor();
		await walkTo("Keys");
		await upstream.waitForAbort(upstream.requests.length);
	});

	test("closes the dialog of a key when the user goes back to another key", async () => {
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

	test("stays on the account that the URL names after the user saves a change", async () => {
		await page.goto(`/credit?account=${friend.accountId}`);
		await page.getByRole("button", { name: "Account: Birch Works" }).waitFor();
		await page.evaluate((id) => localStorage.setItem("tollgate-account", id), owner.accountId);
		await walkTo("Settings");
		await name().fill("Birch Works AG");
		await name().press("Enter");
		await page.getByRole("button", { name: "Account: Birch Works AG" }).waitFor();
	});

	test("shows the person who signed in most recently in another tab", async () => {
		await walk(page, "/settings");
		await page.getByText("(this one)").waitFor();
		await signIn(friend);
		const other = await context.newPage();
		await other.goto("/settings");
		await page.getByRole("button", { name: `You: ${friend.email}` }).waitFor();
		await page.getByText(`Signed in as ${friend.email}.`).waitFor();
		await signIn(owner);
		await other.reload();
		await page.getByRole("button", { name: `You: ${owner.email}` }).waitFor();
		await other.close();
	});
});
