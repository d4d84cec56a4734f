import { describe, expect, test } from "bun:test";
import { mailsTo } from "../../console/mailbox.ts";
import { mailedLink, newPerson, PASSWORD, signedUp } from "../../console/person.ts";
import { testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { startLyingProvider } from "../../support/lying-provider.ts";
import { waitFor } from "../../support/wait.ts";
import { becomeVisitor, hasChromium, type Tab } from "../chromium.ts";
import { picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

const GUEST = "grace@example.com";

testsMayTake(180_000);

const { service, open } = await withScene();
const startProvider = async () => {
	const provider = await startLyingProvider((sent) => ({
		...{ iss: provider.issuer, aud: "tollgate", sub: "ada", nonce: sent.get("nonce") ?? "", name: "Ada" },
		...{ email: "ada@works.example", email_verified: true, groups: ["makers"] },
	}));
	return provider;
};
const issuer = LONG ? (await startProvider()).issuer : "none:";
const owner = await signedUp(service);
await owner.send("PATCH", "/api/console/account", { name: "Example Works" });
await owner.send("POST", "/api/console/keys", { name: "the owner's key" });
const house = await open({ person: owner });
// Browsers allow passkeys only for host names, not for IP addresses.
const site = service.url.replace("127.0.0.1", "localhost");
const guest = await open({ elsewhere: [site, `${issuer}/auth?`] });

describe.skipIf(!hasChromium)("members of an account in a browser", () => {
	const shoot = (tab: Tab, name: string) => picture(tab.page, name);
	const members = (tab: Tab) => tab.page.getByRole("table", { name: "Members" });

	test("an invitation leads a new person through sign-up into the account", async () => {
		await house.page.goto("/settings");
		await house.page.getByLabel("Invite by email").fill(GUEST);
		await house.page.getByRole("button", { name: "Invite", exact: true }).click();
		await house.page.getByRole("table", { name: "Open invitations" }).getByText(GUEST).waitFor();
		await shoot(house, "members-1-invited");

		const { page } = guest;
		await page.goto(await mailedLink(newPerson(service, GUEST)));
		await page.getByRole("link", { name: "Sign up" }).click();
		await page.getByLabel("Name").fill("Grace Guest");
		await page.getByLabel("Email").fill(GUEST);
		await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await page.getByRole("button", { name: "Sign up" }).click();
		await page.getByRole("heading", { name: "Check your mail" }).waitFor();
		await page.goto(await mailedLink(newPerson(service, GUEST)));
		await page.getByRole("button", { name: "Confirm the address" }).click();
		await page.waitForURL("**/invite?token=*");
		await shoot(guest, "members-2-invitation");
		await page.getByRole("button", { name: "Accept the invitation" }).click();
		await page.waitForURL("**/overview");
		await page.getByRole("button", { name: "Account: Example Works" }).waitFor();
		await walk(page, "/keys");
		await page.getByText("No keys yet.").waitFor();
		await house.page.reload();
		await members(house)
			.locator("tr", { hasText: GUEST })
			.getByRole("combobox", { name: "Role of Grace Guest" })
			.waitFor();
		expect(await house.page.getByRole("table", { name: "Open invitations" }).count()).toBe(0);
	});

	test("a developer sees the members and cannot change the account", async () => {
		const { page } = guest;
		await walk(page, "/settings");
		await members(guest).getByText("Grace Guest (you)").waitFor();
		await members(guest).getByText(owner.email).waitFor();
		await shoot(guest, "members-3-settings");
		expect(await members(guest).getByRole("button", { name: "Remove" }).count()).toBe(0);
		expect(await page.getByLabel("Invite by email").count()).toBe(0);
		expect(await page.getByLabel("Name of the account").isDisabled()).toBe(true);
		const statuses = await page.evaluate(async (account) => {
			const send = async (method: string, path: string, body: object) => {
				const init = { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
				return (await fetch(`/api/console${path}?account=${account}`, init)).status;
			};
			return [
				await send("PATCH", "/account", { name: "Mine" }),
				await send("POST", "/invitations", { email: "friend@example.com", role: "owner" }),
			];
		}, owner.accountId);
		expect(statuses).toEqual([403, 403]);
		expect(guest.failures.splice(0)).toEqual(["403 PATCH /api/console/account", "403 POST /api/console/invitations"]);
		await walk(page, "/credit");
		await page.getByText("Your role in Example Works is Developer.").waitFor();
		const key = await page.request.post(`/api/console/keys?account=${owner.accountId}`, {
			headers: { origin: service.url },
			data: { name: "the guest's key" },
		});
		expect(key.status()).toBe(200);
	});

	test("an open page of a removed member switches to another account", async () => {
		const { page } = guest;
		await walk(page, "/keys");
		await page.getByRole("link", { name: "the guest's key" }).waitFor();
		await members(house).locator("tr", { hasText: GUEST }).getByRole("button", { name: "Remove" }).click();
		await house.page.getByText(/^the guest's key \(…/).waitFor();
		await shoot(house, "members-4-keys");
		await house.page.getByRole("button", { name: "Remove and revoke the keys" }).click();
		await members(house).getByText(GUEST).waitFor({ state: "detached" });
		const [key] = await service.db.sql`select state from api_key where name = ${"the guest's key"}`;
		expect(key?.state).toBe("revoked");
		const navigation = page.getByRole("navigation", { name: "Main" });
		await navigation.getByRole("link", { name: "Usage" }).click();
		// The page shows the guest's own account again: only there the navigation has the credit page.
		await navigation.getByRole("link", { name: "Credit" }).waitFor();
		await navigation.getByRole("link", { name: "Keys" }).click();
		await page.getByText("No keys yet.").waitFor();
		await shoot(guest, "members-4-removed");
		expect(await page.getByText("the guest's key").count()).toBe(0);
		expect(await page.getByRole("button", { name: /^Account:/ }).count()).toBe(0);
		expect(new Set(guest.failures.splice(0).map((failure) => failure.slice(0, 7)))).toEqual(new Set(["404 GET"]));
	});

	// The short form tests single sign-on in `console/company.test.ts`, with a real provider.
	test.if(LONG)("people of a company sign in through their company's identity provider", async () => {
		const { page } = house;
		await page.getByRole("button", { name: "Set up single sign-on" }).click();
		await page.getByLabel("Email domain").fill("works.example");
		await page.getByLabel("Issuer").fill(issuer);
		await page.getByLabel("Client ID").fill("tollgate");
		await page.getByLabel("Client secret").fill("a secret");
		await page.getByLabel("Role claim").fill("groups");
		await page.getByLabel("Role values").fill("makers = developer");
		await page.getByText(/^Require single sign-on/).click();
		await page
			.getByRole("heading", { name: "Single sign-on" })
			.locator("xpath=../..")
			.getByRole("button", { name: "Save" })
			.click();
		await page.getByText("_tollgate.works.example").waitFor();
		await shoot(house, "members-6-company");
		await service.db.sql`update company_sign_in set domain_verified_at = now()`;
		await becomeVisitor(guest);
		await guest.page.goto("/sign-in?next=/settings");
		await guest.page.getByRole("button", { name: "Sign in with your company's account" }).click();
		await guest.page.getByLabel("Work email").fill("ada@works.example");
		await guest.page.getByRole("button", { name: "Continue" }).click();
		await members(guest).getByText("Ada (you)").waitFor();
		expect(await guest.page.getByLabel("Current password").count()).toBe(0);
		await shoot(guest, "members-7-company");
	});

	test("a passkey signs in once per challenge, only with user verification", async () => {
		const { page } = guest;
		await becomeVisitor(guest);
		const cdp = await page.context().newCDPSession(page);
		await cdp.send("WebAuthn.enable");
		const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
			options: {
				...{ protocol: "ctap2", transport: "internal", automaticPresenceSimulation: true },
				...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
			},
		});
		const sent: { path: string; body: string; cookie: string }[] = [];
		page.on("request", async (request) => {
			const path = new URL(request.url()).pathname;
			if (path.startsWith("/api/auth/passkey/"))
				sent.push({ path, body: request.postData() ?? "", cookie: (await request.allHeaders()).cookie ?? "" });
		});
		await page.goto(`${site}/sign-in?next=/settings`);
		await page.getByLabel("Email").fill(owner.email);
		await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await page.getByRole("button", { name: "Sign in", exact: true }).click();
		await page.getByLabel("Name of the new passkey").fill("This laptop");
		await page.getByRole("button", { name: "Add a passkey" }).click();
		const table = page.getByRole("table", { name: "Passkeys" });
		await table.getByText("This laptop").waitFor();
		await shoot(guest, "members-8-passkey");
		const signOut = async () => {
			await page.evaluate(() =>
				fetch("/api/auth/sign-out", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }),
			);
			await page.goto(`${site}/sign-in?next=/settings`);
		};
		const press = () => page.getByRole("button", { name: "Sign in with a passkey" }).click();
		const refused = async () => {
			const end = page.waitForResponse("**/passkey/sign-in-end");
			await press();
			expect((await end).status()).toBe(400);
			await page.getByText("This passkey was not accepted").waitFor();
		};
		await signOut();
		await press();
		await table.getByText("This laptop").waitFor();
		expect(mailsTo(owner.email).filter(({ text }) => text.includes("A passkey was added"))).toHaveLength(1);

		const heard = sent.findLast(({ path }) => path.endsWith("/sign-in-end"));
		const again = (headers: Record<string, string>, body: string, path = "sign-in-end") =>
			fetch(`${service.url}/api/auth/passkey/${path}`, {
				method: "POST",
				headers: { "content-type": "application/json", origin: site, ...headers },
				body,
			});
		await service.db.sql`update passkey set counter = 0`;
		expect((await again({ cookie: heard?.cookie ?? "" }, heard?.body ?? "")).status).toBe(400);
		expect((await again({}, heard?.body ?? "")).status).toBe(400);
		const begun = await again({}, "{}", "sign-in-begin");
		const cookie = begun.headers
			.getSetCookie()
			.map((line) => line.split(";")[0])
			.join("; ");
		expect((await again({ cookie }, heard?.body ?? "")).status).toBe(400);
		expect((await again({ cookie, origin: "https://evil.example" }, "{}", "sign-in-begin")).status).toBe(403);
		expect((await again({}, "{}", "register-begin")).status).toBe(401);
		// An old session cannot register a passkey, and a device without user verification cannot sign in.
		await service.db
			.sql`update session set authenticated_at = null, created_at = created_at - interval '16 minutes' where user_id = (select id from console_user where email = ${owner.email})`;
		const late = await page.evaluate(async () => {
			const init = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
			return (await fetch("/api/auth/passkey/register-begin", init)).status;
		});
		expect(late).toBe(403);
		await signOut();
		await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
		// Makes the browser skip user verification, although its response claims that it verified the user.
		await page.route("**/passkey/sign-in-begin", async (route) => {
			const response = await route.fetch();
			await route.fulfill({ response, json: { ...(await response.json()), userVerification: "discouraged" } });
		});
		await refused();
		await page.unroute("**/passkey/sign-in-begin");
		await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
		// Raises the stored counter above the passkey's, as after the use of a copy.
		await service.db.sql`update passkey set counter = 1000000`;
		await refused();
		// Resetting the password removes the passkey, which then cannot sign in.
		await owner.send("POST", "/api/auth/request-password-reset", { email: owner.email });
		const resets = () => mailsTo(owner.email).flatMap(({ text }) => /reset\?token=(\S+)/.exec(text)?.[1] ?? []);
		await waitFor(() => resets().length > 0, "the mail for a new password");
		const token = decodeURIComponent(resets().at(-1) ?? "");
		const reset = { newPassword: `${PASSWORD} new`, token };
		expect((await newPerson(service).send("POST", "/api/auth/reset-password", reset)).status).toBe(200);
		expect(Number((await service.db.sql`select count(*) as n from passkey`)[0]?.n)).toBe(0);
		await refused();
		guest.failures.splice(0);
	});

	test("the browsers log no error and no request fails", () => {
		expect([...house.complaints, ...guest.complaints]).toEqual([]);
		expect([...house.failures, ...guest.failures]).toEqual([]);
	});
});
