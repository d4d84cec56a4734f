import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { atEnd } from "../../support/at-end.ts";
import { hasChromium } from "../chromium.ts";
import { setStage, WITH_OWN_BRAND, WITH_PICTURES, withBrowser } from "../stage.ts";
import { createWindows, settled } from "../windows.ts";

// The long form looks at four times as much, and draws pictures.
setDefaultTimeout(WITH_PICTURES ? 1_800_000 : 300_000);

const [stage, browser] = await Promise.all([setStage({ own: WITH_OWN_BRAND }), withBrowser()]);
atEnd(() => stage.stop());
const windows = createWindows(stage, browser);
/** Only a failure, or a machine that does much else, takes so many. */
const TRIES_MAX = 20;

describe.skipIf(!hasChromium)("a visitor, in a browser", () => {
	test("a visitor reckons what a month costs, narrows the models by an address that he can send, and finds a passage of the docs", async () => {
		const { page } = await windows.of("visitor", 1440, "light");
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
		await page.waitForURL("**/models?search=qwen3");
		await page.locator("table.data tbody tr").nth(1).waitFor({ state: "detached" });
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

	test("the first page's script is below 200 KB packed, and a visitor's first page is drawn within a second", async () => {
		const tries: { bytes: number; paintMs: number }[] = [];
		const isQuick = () => tries.some((one) => one.paintMs < 1_000);
		// Other work on the machine only ever makes it slower: one try of so many has to be quick enough.
		while (tries.length < 3 || (tries.length < TRIES_MAX && !isQuick())) {
			const tab = await windows.open();
			await tab.page.goto("/sign-in");
			await settled(tab.page);
			tries.push(await tab.page.evaluate(firstPageCost));
			await tab.close();
		}
		const bytes = Math.max(...tries.map((one) => one.bytes));
		expect(bytes).toBeLessThan(200 * 1024);
		expect([isQuick(), tries.map((one) => Math.round(one.paintMs))]).toEqual([true, expect.any(Array)]);
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
