import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { PASSWORD, signedUp } from "../../console/person.ts";
import { hasChromium } from "../chromium.ts";
import { picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

setDefaultTimeout(180_000);

const { service, open } = await withScene();
const owner = await signedUp(service);
const house = await open({ person: owner });

describe.skipIf(!hasChromium)("a page that was left open", () => {
	test("asks for the password before a key without a cap is made, and goes on where it was", async () => {
		const { page } = house;
		await page.goto("/keys");
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
		const { page } = house;
		await service.db.sql`update session set authenticated_at = null, created_at = created_at - interval '16 minutes'`;
		await walk(page, "/settings");
		await page.getByLabel("Invite by email").fill("guest@example.com");
		await page.getByRole("button", { name: "Invite", exact: true }).click();
		await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
		await page.getByText("Please give your password again for this.").waitFor();
		expect((await service.db.sql`select 1 from invitation`).length).toBe(0);
		const refused = house.complaints.filter((text) => !/40[03]/.test(text));
		expect(refused).toEqual([]);
	});
});
