import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { LANGUAGE_COOKIE } from "../../src/base/language.ts";
import { germanRefusals } from "../../src/console/texts/german-refusals.ts";
import { germanRefusalsBelow } from "../../src/console/texts/german-refusals-below.ts";
import { germanRefusalsLibrary } from "../../src/console/texts/german-refusals-library.ts";
import { german } from "../../src/console/web/german/german.ts";
import { signedUp } from "../console/person.ts";
import { atEnd } from "../support/at-end.ts";
import type { Tab, TabOptions } from "./chromium.ts";
import { hasChromium, openTab } from "./chromium.ts";
import { layoutOf, problemsOf } from "./page-problems.ts";
import type { Stage } from "./stage.ts";
import { LONG_MODEL, MODEL, picture, setStage, WITH_OWN_BRAND, WITH_PICTURES, withBrowser } from "./stage.ts";

// The long form looks at four times as much, and draws pictures.
setDefaultTimeout(WITH_PICTURES ? 1_800_000 : 300_000);

/** Nothing is in it, and it is the service's own: whoever leaves the site gets another process, which compiles every script anew. */
const BLANK = "/livez";
const isBlank = (page: Page) => new URL(page.url(), stage.service.url).pathname === BLANK;
type View = readonly [width: 360 | 1440, scheme: "light" | "dark"];
const VIEWS: readonly View[] = [
	[1440, "light"],
	[360, "dark"],
];
/** The long form (`bun run pages`) loads each page in all four and takes pictures; the short one loads it in one of two. */
const ALL_VIEWS: readonly View[] = [...VIEWS, [1440, "dark"], [360, "light"]];

type Who = "visitor" | "rich" | "extreme" | "fresh" | "operator";

/** Every page, as each kind of viewer sees it. */
const PAGES: readonly (readonly [name: string, who: Who, path: (stage: Stage) => string])[] = [
	["landing", "visitor", () => "/"],
	["sign-in", "visitor", () => "/sign-in"],
	["sign-up", "visitor", () => "/sign-up"],
	["verify", "visitor", () => "/verify"],
	["verify-failed", "visitor", () => "/verify?error=TOKEN_EXPIRED"],
	["reset", "visitor", () => "/reset"],
	["reset-new", "visitor", () => "/reset?token=nothing"],
	["models", "visitor", () => "/models"],
	["model", "visitor", () => `/models/${MODEL}`],
	["model-slash-id", "visitor", () => "/models/qwen/qwen3-32b"],
	["docs", "visitor", () => "/docs"],
	["docs-tools", "visitor", () => "/docs/tools"],
	["docs-moving", "visitor", () => "/docs/moving"],
	["docs-errors", "visitor", () => "/docs/errors"],
	["docs-batches", "visitor", () => "/docs/batches"],
	["docs-limits", "visitor", () => "/docs/limits"],
	["docs-roles", "visitor", () => "/docs/roles"],
	["docs-api", "visitor", () => "/docs/api"],
	["not-found", "visitor", () => "/nowhere"],
	["overview-empty", "fresh", () => "/overview"],
	["keys-empty", "fresh", () => "/keys"],
	["projects-empty", "fresh", () => "/projects"],
	["credit-empty", "fresh", () => "/credit"],
	["usage-empty", "fresh", () => "/usage"],
	["requests-empty", "fresh", () => "/requests"],
	["playground-empty", "fresh", () => "/playground"],
	["invite", "fresh", () => "/invite?token=nothing"],
	["overview", "rich", () => "/overview"],
	["keys", "rich", () => "/keys"],
	["key", "rich", ({ ids }) => `/keys/${ids.key}`],
	["key-create", "rich", () => "/keys?create=1"],
	["projects", "rich", () => "/projects"],
	["project", "rich", ({ ids }) => `/projects/${ids.project}`],
	["credit", "rich", () => "/credit#held"],
	["usage", "rich", () => "/usage?range=30d"],
	["usage-tokens", "rich", () => "/usage?range=30d&show=tokens&group=key"],
	["requests", "rich", () => "/requests"],
	["request", "rich", ({ ids }) => `/requests/${ids.request}`],
	["requests-refused", "rich", () => "/requests?status=refused"],
	["request-refused", "rich", ({ ids }) => `/requests/${ids.refused}`],
	["request-missing", "rich", () => "/requests/req_0"],
	["batches", "rich", () => "/batches"],
	["batch-missing", "rich", () => "/batches/batch_0"],
	["playground", "rich", () => "/playground"],
	["settings", "rich", () => "/settings"],
	["extreme-overview", "extreme", () => "/overview"],
	["extreme-keys", "extreme", () => "/keys"],
	["extreme-key", "extreme", ({ ids }) => `/keys/${ids.extremeKey}`],
	["extreme-projects", "extreme", () => "/projects"],
	["extreme-project", "extreme", ({ ids }) => `/projects/${ids.extremeProject}`],
	["extreme-credit", "extreme", () => "/credit"],
	["extreme-usage", "extreme", () => "/usage?range=30d"],
	["extreme-usage-key", "extreme", () => "/usage?range=30d&group=key&show=tokens"],
	["extreme-requests", "extreme", () => "/requests?range=30d"],
	["extreme-request", "extreme", ({ ids }) => `/requests/${ids.extremeRequest}`],
	["extreme-request-refused", "extreme", ({ ids }) => `/requests/${ids.extremeRefused}`],
	["extreme-model", "extreme", () => `/models/${LONG_MODEL}`],
	["extreme-playground", "extreme", () => "/playground"],
	["operator", "operator", () => "/operator"],
	["operator-top-ups", "operator", () => "/operator/top-ups"],
	["operator-accounts", "operator", () => "/operator/accounts"],
	["operator-account", "operator", ({ rich }) => `/operator/accounts/${rich.accountId}`],
	["operator-account-extreme", "operator", ({ extreme }) => `/operator/accounts/${extreme.accountId}`],
	["operator-deployments", "operator", () => "/operator/deployments"],
	["operator-instances", "operator", () => "/operator/instances"],
	["operator-reconciliation", "operator", () => "/operator/reconciliation"],
	["operator-audit", "operator", () => "/operator/audit"],
	["operator-management-keys", "operator", () => "/operator/management-keys"],
	["operator-not-found", "operator", () => "/operator/nowhere"],
];

/** Pages that show nothing without the database; those of visitors are fetched before. */
const FAILING: ReadonlySet<string> = new Set(
	PAGES.map(([name]) => name).filter((name) => !["key-create", "request-missing", "operator-not-found"].includes(name)),
);
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
/** Everything but who the viewer is. */
const FIGURES = /\/api\/console\/(?!me\b|public\/config)/;
const UNAVAILABLE = {
	status: 503,
	headers: { "x-request-id": "req_test", "content-type": "application/json" },
	body: JSON.stringify({
		error: { message: "The database is away.", type: "server_error", code: "service_unavailable" },
	}),
};

const [stage, browser] = await Promise.all([setStage({ own: WITH_OWN_BRAND }), withBrowser()]);
atEnd(() => stage.stop());
const openAs = (options?: TabOptions) => openTab(browser as Browser, stage.service.url, options);

describe.skipIf(!hasChromium)("every page of the console, in a browser", () => {
	const windows = new Map<Who, Tab>();

	/**
	 * The viewer's window in this size and scheme, on a blank page, with nothing kept from the test before but the session.
	 * It is one for all tests: a new one starts a process and compiles every script, which takes longer than most pages.
	 * Nothing moves in it, which is a tenth of the work; where people work in a page (`journey.test.ts` and the others) it does.
	 */
	async function windowOf(who: Who, ...view: View): Promise<Tab> {
		const person = who === "visitor" ? {} : { person: stage[who] };
		const tab = windows.get(who) ?? (await openAs({ ...person, still: !WITH_PICTURES }));
		windows.set(who, tab);
		if (!isBlank(tab.page)) {
			if (tab.page.url() !== "about:blank") await tab.page.evaluate("localStorage.clear(), sessionStorage.clear()");
			await tab.page.goto(BLANK);
			await tab.page.unrouteAll();
		}
		await seenAs(tab.page, view);
		tab.complaints.length = 0;
		return tab;
	}

	test("axe finds nothing, nothing scrolls sideways at either width, and the policy is kept, light and dark", async () => {
		const people = [...new Set(PAGES.map(([, who]) => who))];
		// A window for each viewer, side by side: they wait for different things.
		expect((await Promise.all(people.map(visitAll))).flat()).toEqual([]);
	});

	async function visitAll(who: Who): Promise<string[]> {
		const found: string[] = [];
		const pages = PAGES.filter((one) => one[1] === who);
		await inItsViews(who, pages, async (tab, [name, , path], view) => {
			if (isBlank(tab.page)) await tab.page.goto(path(stage));
			else await walk(tab.page, path(stage));
			await settled(tab.page);
			await picture(tab.page, `${name}-${view.join("-")}`);
			for (const problem of await problemsOf(tab.page)) found.push(`${name}, ${view}: ${problem}`);
			for (const problem of await layoutInTheOther(tab.page, view)) found.push(`${name}, not ${view}: ${problem}`);
			for (const complaint of tab.complaints.splice(0)) found.push(`${name}: ${complaint}`);
		});
		return found;
	}

	test("in German no page says an English sentence of the catalogue, and nothing scrolls sideways at 360 px", async () => {
		expect(
			(await Promise.all((["visitor", "fresh", "rich", "extreme", "operator"] as const).map(readInGerman))).flat(),
		).toEqual([]);
	});

	/** But for what stands on the page of the interface: its description is English, as the interface is. */
	async function readInGerman(who: Who): Promise<string[]> {
		const found: string[] = [];
		const tab = await windowOf(who, 360, "light");
		await tab.context.addCookies([{ name: LANGUAGE_COOKIE, value: "de", url: stage.service.url }]);
		for (const [name, , path] of GERMAN_PAGES.filter((one) => one[1] === who)) {
			if (isBlank(tab.page)) await tab.page.goto(path(stage));
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
			const tab = await windowOf(who, 360, "dark");
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
		await rich.goto("/invite?token=nothing");
		await rich.locator("main button").last().click();
		await says(rich, "Diese Einladung gilt nicht mehr", "invite");
		for (const who of ["visitor", "rich"] as const)
			await (await windowOf(who, 360, "dark")).context.clearCookies({ name: LANGUAGE_COOKIE });
		await stage.service.db.sql`update console_user set language = null where email = ${stage.rich.email}`;
		expect(found).toEqual([]);
	});

	test("a page whose figures cannot be read says so in place of them, at either width, light and dark", async () => {
		expect((await Promise.all((["rich", "operator"] as const).map(failAll))).flat()).toEqual([]);
	});

	async function failAll(who: Who): Promise<string[]> {
		const found: string[] = [];
		const pages = PAGES.filter((one) => one[1] === who && FAILING.has(one[0]));
		await inItsViews(who, pages, async (tab, [name, , path], view) => {
			if (isBlank(tab.page)) {
				await tab.page.goto("/docs");
				await settled(tab.page);
				await tab.page.route(FIGURES, (route) => route.fulfill(UNAVAILABLE));
			}
			await walk(tab.page, path(stage));
			const isSaid = tab.page.getByRole("alert").first().waitFor();
			const stuck = await Promise.all([isSaid, settled(tab.page)]).catch((error) => `${name}: ${error}`);
			if (typeof stuck === "string") found.push(stuck);
			await picture(tab.page, `failing-${name}-${view.join("-")}`);
			for (const problem of await problemsOf(tab.page)) found.push(`${name}, ${view}: ${problem}`);
			for (const part of ["The database is away.", "req_test", "Try again"]) {
				const isThere = tab.page.getByText(part).first().waitFor();
				await isThere.catch(() => found.push(`${name}: does not say “${part}”`));
			}
			for (const problem of await layoutInTheOther(tab.page, view)) found.push(`${name}, not ${view}: ${problem}`);
		});
		return found;
	}

	/** Each page in one view after the other by turns; in the long form each in every view. */
	async function inItsViews(
		who: Who,
		pages: readonly (typeof PAGES)[number][],
		look: (tab: Tab, page: (typeof PAGES)[number], view: View) => Promise<void>,
	): Promise<void> {
		if (WITH_PICTURES) {
			for (const view of ALL_VIEWS) {
				const tab = await windowOf(who, ...view);
				for (const page of pages) await look(tab, page, view);
			}
			return;
		}
		const tab = await windowOf(who, ...(VIEWS[0] as View));
		for (const [nth, page] of pages.entries()) await look(tab, page, VIEWS[nth % VIEWS.length] as View);
	}

	/** Shows the page in the other view, in which the next one is then loaded, and gives what is too wide there. */
	async function layoutInTheOther(page: Page, view: View): Promise<string[]> {
		if (WITH_PICTURES) return [];
		const other = VIEWS.find((one) => one[0] !== view[0]) as View;
		await seenAs(page, other);
		await settled(page);
		return layoutOf(page);
	}

	test("without a connection a page says what to do, and works again when there is one", async () => {
		const tab = await windowOf("rich", 360, "light");
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
		const tab = await windowOf("rich", 1440, "light");
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

	test("dialogs pass axe and keep the focus inside", async () => {
		const tab = await windowOf("rich", 1440, "light");
		await tab.page.goto(`/keys/${stage.ids.key}`);
		for (const name of ["Edit", "Rotate", "Revoke"]) {
			await tab.page.getByRole("button", { name, exact: true }).first().click();
			await tab.page.getByRole("dialog").waitFor();
			await settled(tab.page);
			await picture(tab.page, `dialog-${name.toLowerCase()}-1440-light`);
			expect(await problemsOf(tab.page)).toEqual([]);
			for (let press = 0; press < 12; press += 1) await tab.page.keyboard.press("Tab");
			expect(await tab.page.evaluate(() => document.activeElement?.closest('[role="dialog"]') !== null)).toBe(true);
			await tab.page.keyboard.press("Escape");
			await tab.page.getByRole("dialog").waitFor({ state: "detached" });
		}
		expect(tab.complaints).toEqual([]);
	});

	test("on a narrow screen the navigation is in a drawer, which closes when a page is chosen", async () => {
		const tab = await windowOf("operator", 360, "dark");
		await tab.page.goto("/operator");
		await tab.page.getByRole("button", { name: "Open the menu" }).click();
		await tab.page.getByRole("dialog").getByRole("link", { name: "Audit" }).waitFor();
		await settled(tab.page);
		await picture(tab.page, "menu-360-dark");
		expect(await problemsOf(tab.page)).toEqual([]);
		await tab.page.getByRole("dialog").getByRole("link", { name: "Audit" }).click();
		await tab.page.waitForURL("**/operator/audit");
		await tab.page.getByRole("dialog").waitFor({ state: "detached" });
	});

	test("a session that was ended elsewhere leads to the sign-in, and back to the same page after it", async () => {
		const other = await signedUp(stage.service);
		const tab = await openAs({ person: other });
		await tab.page.goto("/keys");
		await tab.page.getByText("No keys yet.").waitFor();
		await stage.service.db
			.sql`delete from session where user_id in (select id from console_user where email = ${other.email})`;
		await tab.page.getByRole("link", { name: "Usage", exact: true }).click();
		await tab.page.waitForURL("**/sign-in?next=%2Fusage");
		await tab.close();
	});

	test("keys: a slash goes to the search, g and a letter to a page, nothing while somebody types", async () => {
		const tab = await windowOf("rich", 1440, "light");
		await tab.page.goto("/keys");
		await tab.page.getByRole("link", { name: "search-api production" }).waitFor();
		await tab.page.keyboard.press("/");
		await tab.page.keyboard.type("gu batch");
		expect(new URL(tab.page.url()).pathname).toBe("/keys");
		await tab.page.getByText("No key matches").waitFor();
		await tab.page.locator("input[data-search]").fill("batch");
		expect(await tab.page.locator("table.data tbody tr").count()).toBe(1);
		await tab.page.locator("h1").click();
		await tab.page.keyboard.press("g");
		await tab.page.keyboard.press("u");
		await tab.page.waitForURL("**/usage");
	});

	test("keys: the second of two counts by when it was pressed, not by when a busy page comes to hear of it", async () => {
		const tab = await windowOf("rich", 1440, "light");
		await tab.page.goto("/keys");
		await settled(tab.page);
		/** `g` and `u`, pressed so far apart, and heard of so far apart. */
		const chord = (atMs: number, pressedMs: number, heardMs: number) =>
			tab.page.evaluate(
				([atMs, pressedMs, heardMs]) => {
					for (const [key, at, heardAt] of [
						["g", atMs, atMs],
						["u", atMs + pressedMs, atMs + heardMs],
					] as const) {
						performance.now = () => heardAt;
						const event = new KeyboardEvent("keydown", { key, bubbles: true });
						Object.defineProperty(event, "timeStamp", { value: at });
						document.body.dispatchEvent(event);
					}
					Reflect.deleteProperty(performance, "now");
					return location.pathname;
				},
				[atMs, pressedMs, heardMs] as const,
			);
		expect(await chord(1_000_000, 1_100, 0)).toBe("/keys");
		expect(await chord(2_000_000, 900, 5_000)).toBe("/usage");
	});

	test("keys: where a page has no search a slash finds pages, keys, models and requests; a question mark lists the keys", async () => {
		const tab = await windowOf("rich", 1440, "light");
		await tab.page.goto("/usage");
		await settled(tab.page);
		const dialog = tab.page.getByRole("dialog");
		const wanted = dialog.getByLabel("Page, key, model or request id");
		// However fast somebody types behind the slash, every letter stands in the search.
		await tab.page.keyboard.type("/search-api");
		expect(await wanted.inputValue()).toBe("search-api");
		await dialog.getByRole("link", { name: "search-api production" }).waitFor();
		await picture(tab.page, "find-1440-light");
		expect(await problemsOf(tab.page)).toEqual([]);
		await wanted.fill("qwen3");
		await dialog.getByRole("link", { name: "qwen/qwen3-32b" }).waitFor();
		await dialog.getByRole("link", { name: "search-api production" }).waitFor({ state: "detached" });
		await tab.page.keyboard.press("Enter");
		await tab.page.waitForURL("**/models/qwen/qwen3-32b");
		await dialog.waitFor({ state: "detached" });
		await tab.page.keyboard.type(`/${stage.ids.request}\n`);
		await tab.page.waitForURL(`**/requests/${stage.ids.request}`);
		await dialog.waitFor({ state: "detached" });
		await tab.page.keyboard.press("?");
		await dialog.getByText("find any page, key, model or request").waitFor();
		await tab.page.keyboard.press("Escape");

		const visitor = await windowOf("visitor", 1440, "light");
		await visitor.page.goto("/");
		await settled(visitor.page);
		await visitor.page.keyboard.press("/");
		await visitor.page.getByRole("dialog").getByRole("link", { name: "qwen/qwen3-32b" }).waitFor();
		expect(await visitor.page.getByRole("dialog").getByRole("link", { name: "Credit" }).count()).toBe(0);
	});

	test("a visitor reckons what a month costs, narrows the models by an address that he can send, and finds a passage of the docs", async () => {
		const { page } = await windowOf("visitor", 1440, "light");
		await page.goto("/");
		await page.getByRole("button", { name: "Question over documents" }).click();
		await page.getByLabel("Requests a month").fill("1000");
		const bars = page.getByRole("list", { name: "Cost by model, the cheapest first" });
		// 6,000 tokens in at $1 a million and 400 out at $2, a thousand times.
		await bars.getByText("$6.80").first().waitFor();
		// So many answers that the others of the stage are not seen in the median; of the last model there are 19.
		await bars.getByRole("listitem").filter({ hasText: "Llama 3.3" }).getByText("84 tokens/s").waitFor();
		expect(await bars.getByRole("listitem").filter({ hasText: "Mistral" }).getByText("tokens/s").count()).toBe(0);
		const row = (name: string) =>
			page.getByRole("table", { name: "Models" }).getByRole("row").filter({ hasText: name });
		await row("Llama 3.3").getByText("84 tokens/s").waitFor();
		await row("Llama 3.3").getByText("first after 335 ms").waitFor();
		expect(
			await row("Mistral")
				.getByText(/tokens\/s|first after/)
				.count(),
		).toBe(0);
		await page.getByText("Models with fewer than 20 such answers show none.").waitFor();
		await page.goto("/models?can=images");
		await page.getByText("No model matches.").waitFor();
		await page.getByRole("button", { name: "Show all" }).click();
		await page.getByRole("link", { name: "Qwen3 32B" }).waitFor();
		await page.getByRole("textbox", { name: "Search models" }).fill("qwen3");
		expect(new URL(page.url()).search).toBe("?search=qwen3");
		expect(await page.locator("table.data tbody tr").count()).toBe(1);
		await page.goto("/docs");
		await page.getByRole("textbox", { name: "Search the docs" }).waitFor();
		await settled(page);
		await page.keyboard.press("/");
		await page.keyboard.type("spending cap");
		await page.getByRole("list", { name: "Found in the docs" }).getByRole("link", { name: "Keys" }).first().click();
		await page.waitForURL("**/docs/limits#keys");
		await page.locator("h2:focus").getByText("Keys").waitFor();
		expect(await page.getByRole("list", { name: "Found in the docs" }).count()).toBe(0);
	});

	test("a customer who asks for an operator's page is told that there is none", async () => {
		const tab = await windowOf("rich", 1440, "light");
		await tab.page.goto("/operator/accounts");
		await tab.page.getByText("There is nothing at this address.").waitFor();
	});

	test("the first page's script is below 200 KB packed, and a visitor's first page is drawn within a second", async () => {
		const tries: { bytes: number; paintMs: number }[] = [];
		// The best of three: other work on the machine only ever makes it slower.
		for (let attempt = 0; attempt < 3; attempt += 1) {
			const tab = await openAs();
			await tab.page.goto("/sign-in");
			await settled(tab.page);
			tries.push(await tab.page.evaluate(firstPageCost));
			await tab.close();
		}
		const bytes = Math.max(...tries.map((one) => one.bytes));
		const paintMs = Math.min(...tries.map((one) => one.paintMs));
		console.log(`first page: ${Math.round(bytes / 1024)} KB of script, packed; drawn after ${Math.round(paintMs)} ms`);
		expect(bytes).toBeLessThan(200 * 1024);
		expect(paintMs).toBeLessThan(1_000);
	});
});

/** Runs in the page. The paint is reported a little after it happened. */
async function firstPageCost(): Promise<{ bytes: number; paintMs: number }> {
	const resources = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
	const scripts = resources.filter(({ name }) => name.endsWith(".js"));
	const paint = await new Promise<PerformanceEntry>((resolve) => {
		new PerformanceObserver((list) => {
			const first = list.getEntriesByName("first-contentful-paint")[0];
			if (first) resolve(first);
		}).observe({ type: "paint", buffered: true });
	});
	return {
		bytes: scripts.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
		paintMs: paint.startTime,
	};
}

/** Runs in the page: what it says to the eye and to who cannot see it. */
function textOf(): string {
	const marked = [...document.querySelectorAll("[aria-label], [placeholder], [title], [alt]")].flatMap((element) =>
		["aria-label", "placeholder", "title", "alt"].map((name) => element.getAttribute(name) ?? ""),
	);
	return [document.title, document.body.textContent, ...marked].join("\n");
}

/** As a link inside the pages does it: without loading them anew. */
async function walk(page: Page, path: string): Promise<void> {
	await page.evaluate((to) => {
		history.pushState(null, "", to);
		dispatchEvent(new PopStateEvent("popstate"));
	}, path);
}

/** Everything is read and drawn. */
async function settled(page: Page): Promise<void> {
	await page.waitForFunction(
		() =>
			document.querySelector("h1") !== null &&
			document.querySelector('[aria-busy="true"], .mantine-Skeleton-root') === null,
	);
	// Transitions of dialogs; the drawing of charts.
	await page.evaluate(() =>
		Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => undefined))),
	);
}

async function seenAs(page: Page, [width, scheme]: View): Promise<void> {
	await page.setViewportSize({ width, height: width === 360 ? 740 : 900 });
	await page.emulateMedia({ colorScheme: scheme });
	// What listens to the size is told at the next frame, and draws for the one after it.
	await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}
