import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { pages as german, server } from "../../../src/base/de.json";
import { LANGUAGE_COOKIE } from "../../../src/base/language.ts";
import type { Person } from "../../console/person.ts";
import { atEnd, testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { hasChromium, type Tab } from "../chromium.ts";
import { isThereLonger, PAGES, PAGES_SHORT, type StagePage, type Who } from "../every-page.ts";
import { layoutProblems, pageProblems } from "../page-problems.ts";
import { picture, setStage, WITH_OWN_BRAND, WITH_PICTURES, withBrowser } from "../stage.ts";
import {
	createWindows,
	layoutElsewhere,
	settled,
	setView,
	VIEWS,
	type View,
	WIDTHS_BETWEEN,
	walk,
} from "../windows.ts";

// The long form visits four times as many views and takes pictures.
testsMayTake(WITH_PICTURES ? 1_800_000 : 300_000);

// All tests share one service and one window, whose start costs more than most pages.
const [stage, browser] = await Promise.all([setStage({ own: WITH_OWN_BRAND }), withBrowser()]);
atEnd(() => stage.stop());
const windows = createWindows(stage, browser);

/** Pages that show nothing without the database. The short form visits one page of each kind. */
const FAILING: ReadonlySet<string> = new Set(
	LONG
		? PAGES.map(([name]) => name).filter(
				(name) => !["key-create", "request-missing", "operator-not-found"].includes(name),
			)
		: ["overview", "key", "credit", "request", "settings", "operator", "operator-account", "operator-instances"],
);
/** All requests of the console except those for the signed-in person. */
const FIGURES = /\/api\/console\/(?!me\b|public\/config)/;
const UNAVAILABLE = {
	status: 503,
	headers: { "x-request-id": "req_test", "content-type": "application/json" },
	body: JSON.stringify({
		error: { message: "The database is away.", type: "server_error", code: "service_unavailable" },
	}),
};
/** English sentences that must not appear on German pages. Names that the test customers use are excluded. */
const ENGLISH_SENTENCES = [german, server]
	.flatMap((texts) => Object.entries(texts))
	.filter(([english, text]) => / /.test(english) && !/[{<|]/.test(english) && text !== english)
	.map(([english]) => english)
	.filter((english) => english !== "search-api production" && english !== "Opening balance");
const LANGUAGES = ["en", "de"] as const;
type Language = (typeof LANGUAGES)[number];
/**
 * Returns the pages to visit. With pictures: both languages. Otherwise German, whose texts are longer; in the long form
 * pages that also exist with longer names are visited in English.
 */
const pagesIn = (language: Language, who: Who) =>
	(LONG ? PAGES : PAGES_SHORT).filter((page) => {
		if (page[1] !== who) return false;
		return WITH_PICTURES || isThereLonger(page) === (language === "en");
	});

describe.skipIf(!hasChromium)("each page of the console in a browser", () => {
	test("passes axe, fits every width, violates no CSP and is fully in German", async () => {
		const found: string[] = [];
		for (const who of new Set(PAGES.map(([, who]) => who)))
			for (const language of LANGUAGES)
				if (pagesIn(language, who).length > 0) found.push(...(await visitAll(who, language)));
		expect(found).toEqual([]);
	});

	async function visitAll(who: Who, language: Language): Promise<string[]> {
		const found: string[] = [];
		const look = async (tab: Tab, page: StagePage, view: View) => {
			const [name, , path] = page;
			if (windows.isBlank(tab.page)) {
				await tab.context.addCookies([{ name: LANGUAGE_COOKIE, value: language, url: stage.service.url }]);
				await tab.page.goto(path(stage));
				expect(await tab.page.evaluate(() => document.documentElement.lang)).toBe(language);
			} else await walk(tab.page, path(stage));
			await settled(tab.page);
			await picture(tab.page, `${language === "de" ? "german-" : ""}${name}-${view.join("-")}`);
			const problems = await pageProblems(tab.page);
			// German with the longest names is the widest text, so it is checked at each width.
			if (WITH_PICTURES || language === "de") {
				// The short form checks either large text or one other width per page, alternately.
				const nth = (LONG ? PAGES : PAGES_SHORT).indexOf(page);
				const largeText = LONG || WITH_PICTURES || nth % 2 === 0;
				const one = Math.floor(nth / 2) % WIDTHS_BETWEEN.length;
				const all = WITH_PICTURES || (LONG && who === "extreme");
				const between = all ? WIDTHS_BETWEEN : LONG || !largeText ? WIDTHS_BETWEEN.slice(one, one + 1) : [];
				problems.push(...(await layoutElsewhere(tab.page, view, { between, largeText })));
			}
			problems.push(...tab.complaints.splice(0));
			// The API reference is in English on German pages too.
			if (language === "de" && name !== "docs-api") problems.push(...(await saidInEnglish(tab.page)));
			for (const problem of problems) found.push(`${name}, ${language}, ${view}: ${problem}`);
		};
		await windows.inItsViews(who, pagesIn(language, who), look);
		// Forgets the language: visiting a German page stores German as the person's language.
		if (language === "de" && who !== "visitor") expect(await forgetLanguage(stage[who])).toBe(1);
		return found;
	}
});

describe.skipIf(!hasChromium)("the frame of the pages in a browser", () => {
	// The short form tests only the dialog with the fewest fields.
	test.each(LONG ? ["Edit", "Rotate", "Revoke"] : ["Revoke"])(
		"dialog %s passes axe and keeps the keyboard focus inside",
		async (name) => {
			const { page } = await windows.of("rich", 1440, "light");
			await page.goto(`/keys/${stage.ids.key}`);
			await page.getByRole("button", { name, exact: true }).first().click();
			await page.getByRole("dialog").waitFor();
			await settled(page);
			await picture(page, `dialog-${name.toLowerCase()}-1440-light`);
			expect(await pageProblems(page)).toEqual([]);
			for (let press = 0; press < 12; press += 1) await page.keyboard.press("Tab");
			expect(await page.evaluate(() => document.activeElement?.closest('[role="dialog"]') !== null)).toBe(true);
			await page.keyboard.press("Escape");
			await page.getByRole("dialog").waitFor({ state: "detached" });
		},
	);

	test("the menu of the narrow layout closes when a page is chosen", async () => {
		const tab = await windows.of("operator", 360, "dark");
		await tab.page.goto("/operator");
		await tab.page.getByRole("button", { name: "Open the menu" }).click();
		await tab.page.getByRole("dialog").getByRole("link", { name: "Audit" }).waitFor();
		await settled(tab.page);
		await picture(tab.page, "menu-360-dark");
		expect(await pageProblems(tab.page)).toEqual([]);
		await tab.page.getByRole("dialog").getByRole("link", { name: "Audit" }).click();
		await tab.page.waitForURL("**/operator/audit");
		await tab.page.getByRole("dialog").waitFor({ state: "detached" });
	});

	test("the scripts of the first page have less than 200 KB", async () => {
		const { page } = await windows.of("visitor", 1440, "light");
		await page.goto("/sign-in");
		await settled(page);
		const bytes = await page.evaluate(() =>
			(performance.getEntriesByType("resource") as PerformanceResourceTiming[])
				.filter(({ name }) => name.endsWith(".js"))
				.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
		);
		expect(bytes).toBeGreaterThan(100 * 1024);
		expect(bytes).toBeLessThan(200 * 1024);
	});
});

describe.skipIf(!hasChromium)("tables in a browser", () => {
	test("a table of many columns becomes cards in the narrow layout", async () => {
		const { page } = await windows.of("extreme", 1440, "light");
		await page.goto("/overview");
		await settled(page);
		const isTable = (label: string) =>
			page
				.getByRole("table", { name: label, exact: true })
				.locator("tbody td")
				.first()
				.evaluate((cell) => getComputedStyle(cell).display === "table-cell");
		const found: (number | boolean)[][] = [];
		for (const width of [1440, 1101, 900]) {
			await setView(page, [width, "light"]);
			found.push([width, await isTable("Requests"), await isTable("Top models of the last 30 days")]);
		}
		expect(found).toEqual([
			[1440, true, true],
			[1101, true, true],
			[900, false, true],
		]);
	});
});

async function forgetLanguage({ email }: Person): Promise<number> {
	const { sql } = stage.service.db;
	return (await sql`update console_user set language = null where email = ${email} and language = 'de' returning id`)
		.length;
}

async function saidInEnglish(page: Page): Promise<string[]> {
	const shown = await page.evaluate(textOf);
	return ENGLISH_SENTENCES.filter((english) => shown.includes(english)).map((english) => `says: ${english}`);
}

describe.skipIf(!hasChromium)("pages with failing requests in a browser", () => {
	test("a failed read shows the error with a retry button", async () => {
		expect([...(await failAll("rich", 0)), ...(await failAll("operator", 1))]).toEqual([]);
	});

	/** Visits pages with failing requests; the short form visits all pages of a viewer in one view. */
	async function failAll(who: Who, nth: 0 | 1): Promise<string[]> {
		const found: string[] = [];
		/** One component shows the error on every page, so the short form checks one page per view with axe. */
		const looked = new Set<string>();
		const pages = PAGES.filter((one) => one[1] === who && FAILING.has(one[0]));
		const views = LONG ? VIEWS : VIEWS.slice(nth, nth + 1);
		await windows.inItsViews(
			who,
			pages,
			async (tab, [name, , path], view) => {
				if (windows.isBlank(tab.page)) {
					await tab.page.goto("/docs");
					await settled(tab.page);
					await tab.page.route(FIGURES, (route) => route.fulfill(UNAVAILABLE));
				}
				await walk(tab.page, path(stage));
				const isSaid = tab.page.locator('[role="alert"]').first().waitFor();
				const stuck = await Promise.all([isSaid, settled(tab.page)]).catch((error) => `${name}: ${error}`);
				if (typeof stuck === "string") found.push(stuck);
				await picture(tab.page, `failing-${name}-${view.join("-")}`);
				const isLookedAt = WITH_PICTURES || !looked.has(String(view));
				looked.add(String(view));
				for (const problem of await (isLookedAt ? pageProblems : layoutProblems)(tab.page))
					found.push(`${name}, ${view}: ${problem}`);
				const said = await tab.page.locator('[role="alert"]').allInnerTexts();
				for (const part of ["The database is away.", "req_test", "Try again"])
					if (!said.some((text) => text.includes(part))) found.push(`${name}: does not say “${part}”`);
			},
			views,
		);
		return found;
	}

	test("a page that lost its connection works again after a click on Retry", async () => {
		const tab = await windows.of("rich", 360, "light");
		await tab.page.route("**/api/console/**", (route) => route.abort("connectionrefused"));
		await tab.page.goto("/usage");
		await tab.page.getByText("The service could not be reached.").waitFor();
		await picture(tab.page, "offline-360-light");
		expect(await (LONG ? pageProblems : layoutProblems)(tab.page)).toEqual([]);
		await tab.page.unroute("**/api/console/**");
		await tab.page.getByRole("button", { name: "Try again" }).click();
		await tab.page.getByRole("table", { name: "By model" }).waitFor();
	});
});

describe.skipIf(!hasChromium)("the console in German in a browser", () => {
	test("forms show their results in German", async () => {
		const tab = await windows.of("rich", 360, "dark");
		await tab.context.addCookies([{ name: LANGUAGE_COOKIE, value: "de", url: stage.service.url }]);
		const rich = tab.page;
		const found: string[] = [];
		/** Expects the page to show `text` and no English sentence. */
		const says = async (text: string, name: string) => {
			const isSaid = rich.getByText(text).first().waitFor();
			await isSaid.catch(() => found.push(`${name}: does not say “${text}”`));
			await picture(rich, `german-refused-${name}-360-dark`);
			for (const problem of [...(await saidInEnglish(rich)), ...(await layoutProblems(rich))])
				found.push(`${name}: ${problem}`);
		};
		await rich.goto("/credit");
		await rich.getByLabel("Betrag in USD").fill("50");
		await says(german["From {topUpMin} to {topUpMax} at a time"].split("{")[0] ?? "", "top-up");
		if (!WITH_OWN_BRAND) {
			await rich.getByLabel("Betrag in USD").fill("500");
			await rich.getByRole("button", { name: german["Create the top-up"] }).click();
			await says(german["Your top-up is pending. Transfer the amount with these details:"], "transfer");
		}
		await forgetLanguage(stage.rich);
		expect(found).toEqual([]);
	});
});

/** Runs in the page. Returns visible texts, and labels for screen readers. */
function textOf(): string {
	const marked = [...document.querySelectorAll("[aria-label], [placeholder], [title], [alt]")].flatMap((element) =>
		["aria-label", "placeholder", "title", "alt"].map((name) => element.getAttribute(name) ?? ""),
	);
	return [document.title, document.body.textContent, ...marked].join("\n");
}
