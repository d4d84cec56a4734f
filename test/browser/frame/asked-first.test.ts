import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { signedUp } from "../../console/person.ts";
import { hasChromium } from "../chromium.ts";
import { problemsOf } from "../page-problems.ts";
import { OWN_BRAND, picture, WITH_PICTURES, withScene } from "../stage.ts";
import { settled, walk } from "../windows.ts";

setDefaultTimeout(180_000);

const { service, open } = await withScene({
	brand: `${OWN_BRAND}
  terms: { url: "https://acme.example/terms", version: v1 }`,
});

describe.skipIf(!hasChromium)("pages under an operator's own name, in a browser", () => {
	test("are readable in his colour, light and dark, at both widths, and name nobody else", async () => {
		const { page } = await open();
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
		const person = await signedUp(service, { acceptedTerms: "v1" });
		await service.db.sql`delete from terms_acceptance`;
		const { page } = await open({ person });
		await page.goto("/keys");
		await page.getByRole("heading", { name: "Terms of service" }).waitFor();
		expect(await problemsOf(page)).toEqual([]);
		if (WITH_PICTURES) await picture(page, "brand-terms");
		await page.getByRole("checkbox").check();
		await page.getByRole("button", { name: "Go on" }).click();
		await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
	});
});
