import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { atEnd } from "../../support/at-end.ts";
import { hasChromium } from "../chromium.ts";
import type { Who } from "../every-page.ts";
import { PAGES } from "../every-page.ts";
import { problemsOf } from "../page-problems.ts";
import { picture, setStage, WITH_OWN_BRAND, WITH_PICTURES, withBrowser } from "../stage.ts";
import { createWindows, layoutInTheOther, settled, walk } from "../windows.ts";

// The long form looks at four times as much, and draws pictures.
setDefaultTimeout(WITH_PICTURES ? 1_800_000 : 300_000);

const [stage, browser] = await Promise.all([setStage({ own: WITH_OWN_BRAND }), withBrowser()]);
atEnd(() => stage.stop());
const windows = createWindows(stage, browser);

describe.skipIf(!hasChromium)("every page of the console, in a browser", () => {
	test("axe finds nothing, nothing scrolls sideways at either width, and the policy is kept, light and dark", async () => {
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
			for (const problem of await layoutInTheOther(tab.page, view)) found.push(`${name}, not ${view}: ${problem}`);
			for (const complaint of tab.complaints.splice(0)) found.push(`${name}: ${complaint}`);
		});
		return found;
	}
});
