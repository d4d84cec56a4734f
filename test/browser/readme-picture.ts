/** Takes the screenshot of the console for README.md: `bun test/browser/readme-picture.ts`. */
import { join } from "node:path";
import { stopTestPostgres } from "../support/postgres.ts";
import { launch, openTab } from "./chromium.ts";
import { setStage } from "./stage.ts";

const TARGET = join(import.meta.dir, "../../src/console/overview.webp");
const WIDTH = 1180;
const HEIGHT = 760;

const stage = await setStage();
const browser = await launch();
try {
	const tab = await openTab(browser, stage.service.url, { width: WIDTH, height: HEIGHT, person: stage.rich });
	await tab.page.goto("/overview");
	await tab.page.waitForLoadState("networkidle").catch(() => {
		// A timeout is expected, because the live feed never ends: the page is drawn by then.
	});
	await tab.page.locator("main svg").first().waitFor();
	await tab.page.waitForTimeout(1_000);
	const debuggerSession = await tab.context.newCDPSession(tab.page);
	const { data } = await debuggerSession.send("Page.captureScreenshot", { format: "webp", quality: 80 });
	console.log(await Bun.write(TARGET, Buffer.from(data, "base64")), "bytes to", TARGET);
	await tab.close();
} finally {
	await browser.close();
	await stage.stop();
	await stopTestPostgres();
}
