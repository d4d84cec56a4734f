import type { Browser, Page } from "playwright-core";
import { cookiesOf, openTab, type Tab, type TabOptions } from "./chromium.ts";
import type { StagePage, Who } from "./every-page.ts";
import { layoutOf } from "./page-problems.ts";
import { type Stage, WITH_PICTURES } from "./stage.ts";

/** Nothing is in it, and it is the service's own: whoever leaves the site gets another process, which compiles every script anew. */
const BLANK = "/livez";
export type View = readonly [width: 360 | 1440, scheme: "light" | "dark"];
type AnyView = readonly [width: number, scheme: "light" | "dark"];
/**
 * Of a tablet or half a screen, where tables of many columns are cards beside the navigation; a little wider, where they are not; and of most
 * portable computers.
 */
export const BETWEEN: readonly number[] = [768, 1024, 1101, 1366];
export const VIEWS: readonly View[] = [
	[1440, "light"],
	[360, "dark"],
];
/** The long form (`bun run pages`) loads each page in all four and takes pictures; the short one loads it in one of two. */
const ALL_VIEWS: readonly View[] = [...VIEWS, [1440, "dark"], [360, "light"]];

/** A window in which the stage's viewers look at pages one after the other, for all tests of a file. */
export interface Windows {
	of(who: Who, ...view: View): Promise<Tab>;
	open(options?: TabOptions): Promise<Tab>;
	/** Nothing of the service's pages was loaded in it since it was asked for. */
	isBlank(page: Page): boolean;
	inItsViews(
		who: Who,
		pages: readonly StagePage[],
		look: (tab: Tab, page: StagePage, view: View) => Promise<void>,
		views?: readonly View[],
	): Promise<void>;
}

export function createWindows(stage: Stage, browser: Browser | undefined): Windows {
	let kept: Tab | undefined;
	const open = (options?: TabOptions) => openTab(browser as Browser, stage.service.url, options);
	const isBlank = (page: Page) => new URL(page.url(), stage.service.url).pathname === BLANK;

	/**
	 * The window in this size and scheme, on a blank page, with nothing kept from what was before but the viewer's session.
	 * It is one for all: a new one starts a process and compiles every script, which takes longer than most pages.
	 */
	async function of(who: Who, ...view: View): Promise<Tab> {
		const tab = kept ?? (await open({ moves: WITH_PICTURES }));
		kept = tab;
		if (!isBlank(tab.page)) {
			if (tab.page.url() !== "about:blank") await tab.page.evaluate("localStorage.clear(), sessionStorage.clear()");
			await tab.page.goto(BLANK);
			await tab.page.unrouteAll();
		}
		await tab.context.clearCookies();
		if (who !== "visitor") await tab.context.addCookies(cookiesOf(stage[who], stage.service.url));
		await seenAs(tab.page, view);
		tab.complaints.length = 0;
		return tab;
	}

	/** Each page in one view after the other by turns; in the long form each in every view. */
	async function inItsViews(
		who: Who,
		pages: readonly StagePage[],
		look: (tab: Tab, page: StagePage, view: View) => Promise<void>,
		views = VIEWS,
	): Promise<void> {
		if (WITH_PICTURES) {
			for (const view of ALL_VIEWS) {
				const tab = await of(who, ...view);
				for (const page of pages) await look(tab, page, view);
			}
			return;
		}
		const tab = await of(who, ...(views[0] as View));
		for (const [nth, page] of pages.entries()) {
			const view = views[nth % views.length] as View;
			if (tab.page.viewportSize()?.width !== view[0]) await seenAs(tab.page, view);
			await look(tab, page, view);
		}
	}

	return { of, open, isBlank, inItsViews };
}

/**
 * What is too wide at the other widths: at those between the two views; on a telephone whose text is twice as large; in the other view, in which
 * the next page is then loaded.
 */
export async function layoutElsewhere(
	page: Page,
	view: View,
	{ between, largeText }: { between: readonly number[]; largeText: boolean },
): Promise<string[]> {
	const found: string[] = [];
	const look = async (name: string) => {
		await settled(page);
		for (const problem of await layoutOf(page)) found.push(`${name}: ${problem}`);
	};
	const inLargeText = async () => {
		if (!largeText) return;
		const size = (text: string) =>
			page.evaluate((size) => document.documentElement.style.setProperty("font-size", size), text);
		await size("200%");
		await look("in large text");
		await size("");
	};
	if (view[0] === 360) await inLargeText();
	for (const width of between) {
		await seenAs(page, [width, view[1]]);
		await look(`${width} px`);
	}
	if (WITH_PICTURES) {
		await seenAs(page, view);
		return found;
	}
	const other = VIEWS.find((one) => one[0] !== view[0]) as View;
	await seenAs(page, other);
	await look(`not ${view}`);
	if (view[0] !== 360) await inLargeText();
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

export async function settled(page: Page): Promise<void> {
	// By a timer of the page's own: asked from outside, or at each frame, the question costs more than what it waits for.
	await page.evaluate(async () => {
		const isRead = () =>
			document.querySelector("h1") !== null &&
			document.querySelector('[aria-busy="true"], .mantine-Skeleton-root') === null;
		const untilMs = performance.now() + 60_000;
		while (!isRead()) {
			if (performance.now() > untilMs) throw new Error(`${location.pathname} is not read after a minute`);
			await new Promise((later) => setTimeout(later, 20));
		}
		// Transitions of dialogs, which begin with a frame; the drawing of charts.
		await new Promise(requestAnimationFrame);
		await Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => undefined)));
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
