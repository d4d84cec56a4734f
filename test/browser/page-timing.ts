import type { Browser, Page } from "playwright-core";
import { openTab } from "./chromium.ts";

/** When a page was there, from the start of the navigation to it; bytes as they came over the wire. */
export interface Seen {
	/** First contentful paint; 0 where nothing was painted anew. */
	readonly paintMs: number;
	/** Nothing is a placeholder any more, and charts are drawn. */
	readonly shownMs: number;
	readonly bytes: number;
}

declare global {
	interface Window {
		shownMs?: number;
	}
}

/** Opens the page as a link from elsewhere does: document, script, figures. `watchPage` is an init script of it. */
export async function timePage(page: Page, path: string): Promise<Seen> {
	await page.goto(path);
	await page.waitForFunction(() => window.shownMs !== undefined);
	return page.evaluate(readTimes);
}

/** From the click to the `rows`th row of the table. */
export async function timeClick(page: Page, click: () => Promise<void>, rows: number): Promise<Seen> {
	await page.evaluate((wanted) => {
		performance.clearResourceTimings();
		delete window.shownMs;
		addEventListener(
			"click",
			() => {
				const clickedMs = performance.now();
				const look = () => {
					if (document.querySelectorAll("table.data tbody tr").length >= wanted)
						window.shownMs = performance.now() - clickedMs;
					else requestAnimationFrame(look);
				};
				look();
			},
			{ capture: true, once: true },
		);
	}, rows);
	await click();
	await page.waitForFunction(() => window.shownMs !== undefined);
	const bytes = await page.evaluate(() =>
		performance
			.getEntriesByType("resource")
			.reduce((sum, entry) => sum + (entry as PerformanceResourceTiming).transferSize, 0),
	);
	return { paintMs: 0, shownMs: await page.evaluate(() => window.shownMs ?? 0), bytes };
}

/** A visitor without anything in the cache, at the start page. */
export async function timeFirstVisit(
	browser: Browser,
	url: string,
): Promise<Seen & { scriptBytes: number; styleBytes: number }> {
	const tab = await openTab(browser, url, { moves: true });
	await tab.page.addInitScript(watchPage);
	const seen = await timePage(tab.page, "/");
	const sizes = await tab.page.evaluate(() => {
		const resources = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
		const sizeOf = (ending: string) =>
			resources.reduce((sum, { name, encodedBodySize }) => sum + (name.endsWith(ending) ? encodedBodySize : 0), 0);
		return { scriptBytes: sizeOf(".js"), styleBytes: sizeOf(".css") };
	});
	await tab.close();
	return { ...seen, ...sizes };
}

/** Runs in each page before its script: looks at every frame whether all is drawn. */
export function watchPage(): void {
	function look(): void {
		const waiting =
			document.querySelector("h1") === null ||
			document.querySelector('[aria-busy="true"], .mantine-Skeleton-root') !== null ||
			[...document.querySelectorAll(".chart")].some((chart) => chart.querySelector("svg.recharts-surface") === null);
		if (waiting) requestAnimationFrame(look);
		else window.shownMs = performance.now();
	}
	requestAnimationFrame(look);
}

/** Runs in the page. The paint is reported a little after it happened. */
async function readTimes(): Promise<Seen> {
	const paint = await new Promise<PerformanceEntry>((resolve) => {
		new PerformanceObserver((list) => {
			const first = list.getEntriesByName("first-contentful-paint")[0];
			if (first) resolve(first);
		}).observe({ type: "paint", buffered: true });
	});
	const entries = [
		...performance.getEntriesByType("navigation"),
		...performance.getEntriesByType("resource"),
	] as PerformanceResourceTiming[];
	return {
		paintMs: paint.startTime,
		shownMs: window.shownMs ?? 0,
		bytes: entries.reduce((sum, { transferSize }) => sum + transferSize, 0),
	};
}
