import type { Browser, Page } from "playwright-core";
import { cookiesOf, openTab, type Tab, type TabOptions } from "./chromium.ts";
import type { StagePage, Who } from "./every-page.ts";
import { layoutProblems } from "./page-problems.ts";
import { type Stage, WITH_PICTURES } from "./stage.ts";

/** An empty page of the service: leaving the site would start another process, which compiles every script again. */
const BLANK = "/livez";
export type View = readonly [width: 360 | 1440, scheme: "light" | "dark"];
type AnyView = readonly [width: number, scheme: "light" | "dark"];
/** Widths between the narrow and the wide view: tablets and common laptops, with cards or tables. */
export const WIDTHS_BETWEEN: readonly number[] = [768, 1024, 1101, 1366];
export const VIEWS: readonly View[] = [
	[1440, "light"],
	[360, "dark"],
];
/**
 * Views of a page: the long form (`bun run pages`) loads each page in all four and takes screenshots, the short form in
 * one of the first two.
 */
const ALL_VIEWS: readonly View[] = [...VIEWS, [1440, "dark"], [360, "light"]];

/** Creates a window for all tests of a file, in which different viewers look at pages in turn. */
export function createWindows(stage: Stage, browser: Browser | undefined) {
	let kept: Tab | undefined;
	const open = (options?: TabOptions) => openTab(browser as Browser, stage.service.url, options);
	/** True if no page was loaded since the last reset. */
	const isBlank = (page: Page) => new URL(page.url(), stage.service.url).pathname === BLANK;

	/**
	 * Returns the window in this view, on a blank page, with the viewer's session only. All tests share one window,
	 * because a new one starts a process and compiles every script.
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
		await setView(tab.page, view);
		tab.complaints.length = 0;
		return tab;
	}

	/** Visits pages in alternating views; in the long form each page in every view. */
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
			if (tab.page.viewportSize()?.width !== view[0]) await setView(tab.page, view);
			await look(tab, page, view);
		}
	}

	return { of, open, isBlank, inItsViews };
}

/** Returns layout problems at other widths, with text of twice the size, and in the other view. */
export async function layoutElsewhere(
	page: Page,
	view: View,
	{ between, largeText }: { between: readonly number[]; largeText: boolean },
): Promise<string[]> {
	const found: string[] = [];
	const look = async (name: string) => {
		await settled(page);
		for (const problem of await layoutProblems(page)) found.push(`${name}: ${problem}`);
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
		await setView(page, [width, view[1]]);
		await look(`${width} px`);
	}
	if (WITH_PICTURES) {
		await setView(page, view);
		return found;
	}
	await setView(page, VIEWS.find((one) => one[0] !== view[0]) as View);
	await look(`not ${view}`);
	if (view[0] !== 360) await inLargeText();
	return found;
}

/** Opens a path as a link does, without a reload: cached responses and open state stay. */
export async function walk(page: Page, path: string): Promise<void> {
	// The tab is empty if the test runs alone.
	if (page.url() === "about:blank") return void (await page.goto(path));
	await page.evaluate((to) => {
		history.pushState(null, "", to);
		dispatchEvent(new PopStateEvent("popstate"));
	}, path);
}

export async function settled(page: Page): Promise<void> {
	// Polls inside the page, because each query from outside is slower.
	await page.evaluate(async () => {
		const isRead = () =>
			document.querySelector("h1") !== null &&
			document.querySelector('[aria-busy="true"], .mantine-Skeleton-root') === null;
		const untilMs = performance.now() + 60_000;
		while (!isRead()) {
			if (performance.now() > untilMs) throw new Error(`${location.pathname} is not read after a minute`);
			await new Promise((later) => setTimeout(later, 20));
		}
		// Waits for transitions of dialogs and for charts.
		await new Promise(requestAnimationFrame);
		await Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => undefined)));
	});
}

export async function setView(page: Page, [width, scheme]: AnyView): Promise<void> {
	// Makes both changes at the same time, so that the browser computes the layout once.
	await Promise.all([
		page.setViewportSize({ width, height: width === 360 ? 740 : 900 }),
		page.emulateMedia({ colorScheme: scheme }),
	]);
	// Listeners for size changes run in the next frame, and what they draw appears in the frame after it.
	await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}
