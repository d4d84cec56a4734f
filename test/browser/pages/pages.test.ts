import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { LANGUAGE_COOKIE } from "../../../src/base/language.ts";
import { germanRefusals } from "../../../src/console/texts/german-refusals.ts";
import { germanRefusalsBelow } from "../../../src/console/texts/german-refusals-below.ts";
import { germanRefusalsLibrary } from "../../../src/console/texts/german-refusals-library.ts";
import { german } from "../../../src/console/web/german/german.ts";
import { atEnd } from "../../support/at-end.ts";
import { hasChromium } from "../chromium.ts";
import type { Who } from "../every-page.ts";
import { PAGES } from "../every-page.ts";
import { layoutOf, problemsOf } from "../page-problems.ts";
import { picture, setStage, WITH_OWN_BRAND, WITH_PICTURES, withBrowser } from "../stage.ts";
import {
	ALL_VIEWS,
	createWindows,
	layoutBetween,
	layoutInLargeText,
	layoutInTheOther,
	seenAs,
	settled,
	walk,
} from "../windows.ts";

// The long form looks at four times as much, and draws pictures.
setDefaultTimeout(WITH_PICTURES ? 1_800_000 : 300_000);

// One stage, and one window of each viewer, for all that is asked of every page: both are dearer than most pages.
const [stage, browser] = await Promise.all([setStage({ own: WITH_OWN_BRAND }), withBrowser()]);
atEnd(() => stage.stop());
const windows = createWindows(stage, browser);

/** Pages that show nothing without the database; those of visitors are fetched before. */
const FAILING: ReadonlySet<string> = new Set(
	PAGES.map(([name]) => name).filter((name) => !["key-create", "request-missing", "operator-not-found"].includes(name)),
);
/** Everything but who the viewer is. */
const FIGURES = /\/api\/console\/(?!me\b|public\/config)/;
const UNAVAILABLE = {
	status: 503,
	headers: { "x-request-id": "req_test", "content-type": "application/json" },
	body: JSON.stringify({
		error: { message: "The database is away.", type: "server_error", code: "service_unavailable" },
	}),
};
/** Texts of several words that are others in German, and that no customer of the stage gave to a thing of his. */
const ENGLISH_SENTENCES = [german, germanRefusals, germanRefusalsBelow, germanRefusalsLibrary]
	.flatMap((texts) => Object.entries(texts))
	.filter(([english, text]) => / /.test(english) && !/[{<|]/.test(english) && text !== english)
	.map(([english]) => english)
	.filter((english) => english !== "search-api production");
/** Without the page of the interface; in the short form no page twice that is there with longer names and amounts too. */
const GERMAN_PAGES = PAGES.filter(
	([name, who]) =>
		name !== "docs-api" && (WITH_PICTURES || who !== "rich" || !PAGES.some(([other]) => other === `extreme-${name}`)),
);

describe.skipIf(!hasChromium)("every page of the console, in a browser", () => {
	test("axe finds nothing, nothing scrolls sideways at any width or in large text, and the policy is kept, light and dark", async () => {
		const people = [...new Set(PAGES.map(([, who]) => who))];
		// A window for each viewer, side by side: they wait for different things.
		expect((await Promise.all(people.map(visitAll))).flat()).toEqual([]);
	});

	async function visitAll(who: Who): Promise<string[]> {
		const found: string[] = [];
		const pages = PAGES.filter((one) => one[1] === who);
		await windows.inItsViews(who, pages, async (tab, [name, , path], view) => {
			if (windows.isBlank(tab.page)) await tab.page.goto(path(stage));
			else await walk(tab.page, path(stage));
			await settled(tab.page);
			await picture(tab.page, `${name}-${view.join("-")}`);
			for (const problem of await problemsOf(tab.page)) found.push(`${name}, ${view}: ${problem}`);
			for (const problem of await layoutInLargeText(tab.page)) found.push(`${name}, ${problem}`);
			for (const problem of await layoutBetween(tab.page, view)) found.push(`${name}, ${problem}`);
			for (const problem of await layoutInTheOther(tab.page, view)) found.push(`${name}, not ${view}: ${problem}`);
			// It is seen on a telephone before or behind those between.
			if (view[0] !== 360) for (const problem of await layoutInLargeText(tab.page)) found.push(`${name}, ${problem}`);
			for (const complaint of tab.complaints.splice(0)) found.push(`${name}: ${complaint}`);
		});
		return found;
	}
});

describe.skipIf(!hasChromium)("pages that cannot do what they should, in a browser", () => {
	test("a page whose figures cannot be read says so in place of them, at either width, light and dark", async () => {
		expect((await Promise.all((["rich", "operator"] as const).map(failAll))).flat()).toEqual([]);
	});

	async function failAll(who: Who): Promise<string[]> {
		const found: string[] = [];
		/** What stands in place of the figures is the same part of every page: in the short form axe looks at one page in each view. */
		const looked = new Set<string>();
		const pages = PAGES.filter((one) => one[1] === who && FAILING.has(one[0]));
		await windows.inItsViews(who, pages, async (tab, [name, , path], view) => {
			if (windows.isBlank(tab.page)) {
				await tab.page.goto("/docs");
				await settled(tab.page);
				await tab.page.route(FIGURES, (route) => route.fulfill(UNAVAILABLE));
			}
			await walk(tab.page, path(stage));
			const isSaid = tab.page.getByRole("alert").first().waitFor();
			const stuck = await Promise.all([isSaid, settled(tab.page)]).catch((error) => `${name}: ${error}`);
			if (typeof stuck === "string") found.push(stuck);
			await picture(tab.page, `failing-${name}-${view.join("-")}`);
			const isLookedAt = WITH_PICTURES || !looked.has(String(view));
			looked.add(String(view));
			for (const problem of await (isLookedAt ? problemsOf : layoutOf)(tab.page))
				found.push(`${name}, ${view}: ${problem}`);
			for (const part of ["The database is away.", "req_test", "Try again"]) {
				const isThere = tab.page.getByText(part).first().waitFor();
				await isThere.catch(() => found.push(`${name}: does not say “${part}”`));
			}
			for (const problem of await layoutInTheOther(tab.page, view)) found.push(`${name}, not ${view}: ${problem}`);
		});
		return found;
	}

	test("without a connection a page says what to do, and works again when there is one", async () => {
		const tab = await windows.of("rich", 360, "light");
		await tab.page.route("**/api/console/**", (route) => route.abort("connectionrefused"));
		await tab.page.goto("/usage");
		await tab.page.getByText("The service could not be reached.").waitFor();
		await picture(tab.page, "offline-360-light");
		expect(await problemsOf(tab.page)).toEqual([]);
		await tab.page.unroute("**/api/console/**");
		await tab.page.getByRole("button", { name: "Try again" }).click();
		await tab.page.getByRole("table", { name: "Usage by model" }).waitFor();
	});

	test("a page that cannot read its figures says so, with the id of the request and a way to try again", async () => {
		const tab = await windows.of("rich", 1440, "light");
		await tab.page.route("**/api/console/keys*", (route) => route.fulfill(UNAVAILABLE));
		await tab.page.goto("/keys");
		await tab.page.getByText("The database is away.").waitFor();
		await tab.page.getByText("req_test").waitFor();
		await picture(tab.page, "keys-failing-1440-light");
		expect(await problemsOf(tab.page)).toEqual([]);
		await tab.page.unroute("**/api/console/keys*");
		await tab.page.getByRole("button", { name: "Try again" }).click();
		await tab.page.getByRole("link", { name: "search-api production" }).waitFor();
	});
});

describe.skipIf(!hasChromium)("the console in German, in a browser", () => {
	test("in German no page says an English sentence of the catalogue, and nothing scrolls sideways at 360 px", async () => {
		expect(
			(await Promise.all((["visitor", "fresh", "rich", "extreme", "operator"] as const).map(readInGerman))).flat(),
		).toEqual([]);
	});

	/** But for what stands on the page of the interface: its description is English, as the interface is. */
	async function readInGerman(who: Who): Promise<string[]> {
		const found: string[] = [];
		const tab = await windows.of(who, 360, "light");
		await tab.context.addCookies([{ name: LANGUAGE_COOKIE, value: "de", url: stage.service.url }]);
		for (const [name, , path] of GERMAN_PAGES.filter((one) => one[1] === who)) {
			if (windows.isBlank(tab.page)) await tab.page.goto(path(stage));
			else await walk(tab.page, path(stage));
			await settled(tab.page);
			if (WITH_PICTURES) {
				for (const view of ALL_VIEWS) {
					await seenAs(tab.page, view);
					await settled(tab.page);
					await picture(tab.page, `german-${name}-${view.join("-")}`);
				}
				await seenAs(tab.page, [360, "light"]);
			}
			for (const problem of await layoutOf(tab.page)) found.push(`${name}: ${problem}`);
			const shown = await tab.page.evaluate(textOf);
			for (const english of ENGLISH_SENTENCES) if (shown.includes(english)) found.push(`${name} says: ${english}`);
		}
		expect(await tab.page.evaluate(() => document.documentElement.lang)).toBe("de");
		await tab.context.clearCookies({ name: LANGUAGE_COOKIE });
		// Who reads German is written to in German from then on, and reads it in any other browser.
		const { sql } = stage.service.db;
		const email = who === "visitor" ? "" : stage[who].email;
		const kept =
			await sql`update console_user set language = null where email = ${email} and language = 'de' returning id`;
		expect(kept.length).toBe(who === "visitor" ? 0 : 1);
		return found;
	}

	test("in German the usual refusals are German: of sign-in and sign-up, of a form's field, of what is not there", async () => {
		const inGerman = async (who: Who) => {
			const tab = await windows.of(who, 360, "dark");
			await tab.context.addCookies([{ name: LANGUAGE_COOKIE, value: "de", url: stage.service.url }]);
			return tab.page;
		};
		const found: string[] = [];
		/** Said by the page, and nothing on it in English. */
		const says = async (page: Page, text: string, name: string) => {
			const isSaid = page.getByText(text).first().waitFor();
			await isSaid.catch(() => found.push(`${name}: does not say “${text}”`));
			const shown = await page.evaluate(textOf);
			for (const english of ENGLISH_SENTENCES) if (shown.includes(english)) found.push(`${name} says: ${english}`);
			await picture(page, `german-refused-${name}-360-dark`);
			for (const problem of await layoutOf(page)) found.push(`${name}: ${problem}`);
		};
		const visitor = await inGerman("visitor");
		await visitor.goto("/sign-in");
		await visitor.getByLabel("E-Mail").fill(stage.rich.email);
		await visitor.getByLabel("Passwort", { exact: true }).fill("no password of theirs");
		await visitor.locator("form button[type=submit]").click();
		await says(visitor, "E-Mail-Adresse oder Passwort ist falsch.", "sign-in");
		await visitor.goto("/sign-up");
		await visitor.getByLabel("Name").fill("Anna");
		await visitor.getByLabel("E-Mail").fill("anna@refused.example");
		await visitor.getByLabel("Passwort", { exact: true }).fill("passwordpassword");
		await visitor.locator("form button[type=submit]").click();
		await says(visitor, "Dieses Passwort gehört zu denen, die zuerst erraten werden.", "sign-up");
		await visitor.goto("/reset?token=nothing");
		await visitor.locator("input[type=password]").first().fill("a long and new password of theirs");
		await visitor.locator("form button[type=submit]").click();
		await says(visitor, "Dieser Link ist ungültig oder zu alt.", "reset");

		const rich = await inGerman("rich");
		await rich.goto("/settings");
		await rich.getByLabel("Webhook", { exact: true }).fill("ftp://nowhere.example");
		await rich
			.locator("form", { has: rich.getByLabel("Webhook", { exact: true }) })
			.locator("button[type=submit]")
			.click();
		await says(rich, "Die Adresse muss mit https:// beginnen.", "webhook");
		await rich.goto("/credit");
		await rich.getByLabel("Betrag in USD").fill("50");
		await says(rich, german["From {topUpMin} to {topUpMax} at a time"].split("{")[0] ?? "", "top-up");
		if (!WITH_OWN_BRAND) {
			await rich.getByLabel("Betrag in USD").fill("500");
			await rich.getByRole("button", { name: german["Get the reference"] }).click();
			await says(rich, german["Recorded as pending. Now make the transfer:"], "transfer");
		}
		await rich.goto("/invite?token=nothing");
		await rich.locator("main button").last().click();
		await says(rich, "Diese Einladung gilt nicht mehr", "invite");
		for (const who of ["visitor", "rich"] as const)
			await (await windows.of(who, 360, "dark")).context.clearCookies({ name: LANGUAGE_COOKIE });
		await stage.service.db.sql`update console_user set language = null where email = ${stage.rich.email}`;
		expect(found).toEqual([]);
	});
});

/** Runs in the page: what it says to the eye and to who cannot see it. */
function textOf(): string {
	const marked = [...document.querySelectorAll("[aria-label], [placeholder], [title], [alt]")].flatMap((element) =>
		["aria-label", "placeholder", "title", "alt"].map((name) => element.getAttribute(name) ?? ""),
	);
	return [document.title, document.body.textContent, ...marked].join("\n");
}
