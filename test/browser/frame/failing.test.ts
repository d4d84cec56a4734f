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

describe.skipIf(!hasChromium)("pages that cannot do what they should, in a browser", () => {
	test("a page whose figures cannot be read says so in place of them, at either width, light and dark", async () => {
		expect((await Promise.all((["rich", "operator"] as const).map(failAll))).flat()).toEqual([]);
	});

	async function failAll(who: Who): Promise<string[]> {
		const found: string[] = [];
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
			for (const problem of await problemsOf(tab.page)) found.push(`${name}, ${view}: ${problem}`);
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
