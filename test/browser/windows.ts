import type { Browser, Page } from "playwright-core";
import type { Tab, TabOptions } from "./chromium.ts";
import { openTab } from "./chromium.ts";
import type { StagePage, Who } from "./every-page.ts";
import { layoutOf } from "./page-problems.ts";
import type { Stage } from "./stage.ts";
import { WITH_PICTURES } from "./stage.ts";

/** Nothing is in it, and it is the service's own: whoever leaves the site gets another process, which compiles every script anew. */
const BLANK = "/livez";
export type View = readonly [width: 360 | 1440, scheme: "light" | "dark"];
type AnyView = readonly [width: number, scheme: "light" | "dark"];
/** Of a tablet, or of half a screen: tables are cards there, beside the navigation; and the first width at which they are none. */
const BETWEEN = [768, 1024, 1101] as const;
const VIEWS: readonly View[] = [
	[1440, "light"],
	[360, "dark"],
];
/** The long form (`bun run pages`) loads each page in all four and takes pictures; the short one loads it in one of two. */
export const ALL_VIEWS: readonly View[] = [...VIEWS, [1440, "dark"], [360, "light"]];

/** Windows of the stage's viewers, one of each, for all tests of a file. */
export interface Windows {
	of(who: Who, ...view: View): Promise<Tab>;
	/** One more. */
	open(options?: TabOptions): Promise<Tab>;
	/** Nothing of the service's pages was loaded in it since it was asked for. */
	isBlank(page: Page): boolean;
	inItsViews(
		who: Who,
		pages: readonly StagePage[],
		look: (tab: Tab, page: StagePage, view: View) => Promise<void>,
	): Promise<void>;
}

export function createWindows(stage: Stage, browser: Browser | undefined): Windows {
	const windows = new Map<Who, Tab>();
	const open = (options?: TabOptions) => openTab(browser as Browser, stage.service.url, options);
	const isBlank = (page: Page) => new URL(page.url(), stage.service.url).pathname === BLANK;

	/**
	 * The viewer's window in this size and scheme, on a blank page, with nothing kept from the test before but the session.
	 * It is one for all tests: a new one starts a process and compiles every script, which takes longer than most pages.
	 * Nothing moves in it, which is a tenth of the work; where people work in a page (`journey.test.ts` and the others) it does.
	 */
	async function of(who: Who, ...view: View): Promise<Tab> {
		const person = who === "visitor" ? {} : { person: stage[who] };
		const tab = windows.get(who) ?? (await open({ ...person, still: !WITH_PICTURES }));
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

	/** Each page in one view after the other by turns; in the long form each in every view. */
	async function inItsViews(
		who: Who,
		pages: readonly StagePage[],
		look: (tab: Tab, page: StagePage, view: View) => Promise<void>,
	): Promise<void> {
		if (WITH_PICTURES) {
			for (const view of ALL_VIEWS) {
				const tab = await of(who, ...view);
				for (const page of pages) await look(tab, page, view);
			}
			return;
		}
		const tab = await of(who, ...(VIEWS[0] as View));
		for (const [nth, page] of pages.entries()) await look(tab, page, VIEWS[nth % VIEWS.length] as View);
	}

	return { of, open, isBlank, inItsViews };
}

/** What is too wide in windows between the two widths; by turns in the first or the others in the short form. */
export async function layoutBetween(page: Page, view: View): Promise<string[]> {
	const found: string[] = [];
	for (const width of WITH_PICTURES ? BETWEEN : view[0] === 360 ? BETWEEN.slice(0, 1) : BETWEEN.slice(1)) {
		await seenAs(page, [width, view[1]]);
		await settled(page);
		for (const problem of await layoutOf(page)) found.push(`${width} px: ${problem}`);
	}
	if (WITH_PICTURES) await seenAs(page, view);
	return found;
}

/** Shows the page in the other view, in which the next one is then loaded, and gives what is too wide there. */
export async function layoutInTheOther(page: Page, view: View): Promise<string[]> {
	if (WITH_PICTURES) return [];
	const other = VIEWS.find((one) => one[0] !== view[0]) as View;
	await seenAs(page, other);
	await settled(page);
	return layoutOf(page);
}

/** What is too wide on a telephone whose text is twice as large; of a page that is seen on one at this moment. */
export async function layoutInLargeText(page: Page): Promise<string[]> {
	if (page.viewportSize()?.width !== 360) return [];
	const size = (text: string) =>
		page.evaluate((size) => document.documentElement.style.setProperty("font-size", size), text);
	await size("200%");
	await settled(page);
	const found = (await layoutOf(page)).map((problem) => `in large text: ${problem}`);
	await size("");
	return found;
}

/**
 * As a link inside the pages does it: without loading them anew, which is twice the work. What a page shows first is then
 * what was read of it before, and what another part of the same page had open stays open.
 */
export async function walk(page: Page, path: string): Promise<void> {
	// A test that is run by itself begins in an empty tab.
	if (page.url() === "about:blank") return void (await page.goto(path));
	await page.evaluate((to) => {
		history.pushState(null, "", to);
		dispatchEvent(new PopStateEvent("popstate"));
	}, path);
}

/** Everything is read and drawn. */
export async function settled(page: Page): Promise<void> {
	// What is false is asked for again at the next frame; a promise is waited for.
	await page.waitForFunction((): unknown => {
		const isRead =
			document.querySelector("h1") !== null &&
			document.querySelector('[aria-busy="true"], .mantine-Skeleton-root') === null;
		if (!isRead) return false;
		// Transitions of dialogs, which begin with a frame; the drawing of charts.
		return new Promise(requestAnimationFrame).then(() =>
			Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => undefined))),
		);
	});
}

export async function seenAs(page: Page, [width, scheme]: AnyView): Promise<void> {
	// Both for one frame: each by itself has the whole page styled, laid out and drawn.
	await Promise.all([
		page.setViewportSize({ width, height: width === 360 ? 740 : 900 }),
		page.emulateMedia({ colorScheme: scheme }),
	]);
	// What listens to the size is told at the next frame, and draws for the one after it.
	await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}
