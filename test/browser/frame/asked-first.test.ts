import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { PASSWORD, signedUp } from "../../console/person.ts";
import { cookiesOf, hasChromium } from "../chromium.ts";
import { problemsOf } from "../page-problems.ts";
import { OWN_BRAND, picture, WITH_PICTURES, withScene } from "../stage.ts";
import { settled, walk } from "../windows.ts";

setDefaultTimeout(180_000);

const { service, open } = await withScene({
	brand: `${OWN_BRAND}
  terms: { url: "https://acme.example/terms", version: v1 }`,
});
const owner = await signedUp(service, { acceptedTerms: "v1" });
// Here things move, as they do for most people.
const house = await open({ moves: true });

describe.skipIf(!hasChromium)("pages under an operator's own name, in a browser", () => {
	test("are readable in his colour, light and dark, at both widths, and name nobody else", async () => {
		const { page } = house;
		const found: string[] = [];
		for (const [width, scheme] of [
			[1440, "light"],
			[360, "dark"],
		] as const) {
			await page.setViewportSize({ width, height: 800 });
			await page.emulateMedia({ colorScheme: scheme });
			// Drawn anew: colours that fade from one scheme to the other are of neither.
			await page.goto("/");
			for (const path of ["/", "/sign-up", "/docs"]) {
				if (path !== "/") await walk(page, path);
				await settled(page);
				for (const problem of await problemsOf(page)) found.push(`${path}, ${width} ${scheme}: ${problem}`);
				if (await page.getByText("Tollgate").count()) found.push(`${path} names us`);
				if (WITH_PICTURES) await picture(page, `brand-${path.slice(1) || "landing"}-${width}-${scheme}`);
			}
		}
		expect(found).toEqual([]);
		expect(await page.getByRole("link", { name: "Support" }).getAttribute("href")).toBe("mailto:help@acme.example");
	});

	test("ask whoever has not agreed to the terms before they show anything else", async () => {
		const { page, context } = house;
		await page.setViewportSize({ width: 1440, height: 900 });
		await page.emulateMedia({ colorScheme: "light" });
		await context.addCookies(cookiesOf(owner, service.url));
		await service.db.sql`delete from terms_acceptance`;
		await page.goto("/keys");
		await page.getByRole("heading", { name: "Terms of service" }).waitFor();
		expect(await problemsOf(page)).toEqual([]);
		if (WITH_PICTURES) await picture(page, "brand-terms");
		await page.getByRole("checkbox").check();
		await page.getByRole("button", { name: "Go on" }).click();
		await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
	});
});

describe.skipIf(!hasChromium)("a page that was left open", () => {
	const { page, complaints } = house;

	test("asks for the password before a key without a cap is made, and goes on where it was", async () => {
		await walk(page, "/keys");
		await page.getByRole("button", { name: "Create a key" }).first().click();
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("left open");
		await service.db.sql`update session set created_at = created_at - interval '16 minutes'`;
		await form.getByRole("button", { name: "Create" }).click();
		const asked = page.getByRole("dialog", { name: "Your password, please" });
		await asked.getByLabel("Password", { exact: true }).fill("not the password");
		await picture(page, "password-again");
		await asked.getByRole("button", { name: "Continue" }).click();
		await asked.getByText("The password is wrong.").waitFor();
		await asked.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await asked.getByRole("button", { name: "Continue" }).click();
		await page.getByTestId("secret").waitFor();
		await page.getByLabel("I have stored it").check();
		await page.getByRole("button", { name: "Done" }).click();
		await page.getByRole("link", { name: "left open" }).waitFor();
	});

	test("does nothing where the password is not given, and says so", async () => {
		await service.db.sql`update session set authenticated_at = null, created_at = created_at - interval '16 minutes'`;
		await walk(page, "/settings");
		await page.getByLabel("Invite by email").fill("guest@example.com");
		await page.getByRole("button", { name: "Invite", exact: true }).click();
		await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
		await page.getByText("Please give your password again for this.").waitFor();
		expect((await service.db.sql`select 1 from invitation`).length).toBe(0);
		const refused = complaints.filter((text) => !/40[03]/.test(text));
		expect(refused).toEqual([]);
	});
});
