import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { Person } from "../console/person.ts";

/** Paths of the browser. The headless shell comes first: it draws no windows and needs a third less processor time. */
const CHROMIUM = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) =>
	existsSync(path),
);

/** Without a browser the tests are skipped, and a message says so. */
export const hasChromium = CHROMIUM !== undefined;
if (!hasChromium)
	console.log("browser tests are skipped: there is neither /usr/bin/chromium-headless-shell nor /usr/bin/chromium");

/** Timeout of each wait, which only a failure or an overloaded machine reaches. */
const WAIT_MS = 60_000;

/**
 * Features that the driver disables (repeated here, because only the last such list counts), and the browser's own
 * windows, which cost half a second of processor time per tab.
 */
const FEATURES_OFF =
	"AimEnabled,AvoidCorsURLLoaderRestartOnRedirect,AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose," +
	"HttpsFirstBalancedModeAutoEnable,HttpsUpgrades,LensOverlay,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints," +
	"PaintHolding,PreconnectToSearch,ThirdPartyStoragePartitioning,SpareRendererForSitePerProcess,WebUIOmniboxAimPopup," +
	"WebUIOmniboxFullPopup,WebUIOmniboxPopup";

export async function launch(): Promise<Browser> {
	return chromium.launch({
		executablePath: CHROMIUM ?? "",
		headless: true,
		args: [
			"--no-sandbox",
			"--disable-gpu",
			// Without a GPU, a separate GPU process would add a twelfth to the work.
			"--in-process-gpu",
			"--disable-quic",
			"--no-first-run",
			"--disable-background-networking",
			"--disable-component-update",
			"--disable-sync",
			// Pages live for seconds, too short for optimizing compilers to pay off.
			"--js-flags=--no-maglev,--no-opt",
			`--disable-features=${FEATURES_OFF}`,
		],
	});
}

export interface Tab {
	readonly page: Page;
	readonly context: BrowserContext;
	/** Console errors, thrown errors, and requests to other origins. */
	readonly complaints: string[];
	/** Failed requests, such as `403 POST /api/…`, without those that were aborted because the page was left. */
	readonly failures: string[];
	close(): Promise<void>;
}

export interface TabOptions {
	readonly width?: number;
	readonly height?: number;
	readonly scheme?: "light" | "dark";
	readonly person?: Person;
	/** True: shows animations. They double the work of a dialog, because the window is drawn for each frame. */
	readonly moves?: boolean;
	/** Other origins to which the tab's pages may send requests. */
	readonly elsewhere?: readonly string[];
}

/**
 * Opens a tab with its own window, signed in as `person`. Records requests to other origins as complaints, also those
 * of windows that its pages open.
 */
export async function openTab(browser: Browser, url: string, options: TabOptions = {}): Promise<Tab> {
	const context = await browser.newContext({
		baseURL: url,
		viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
		colorScheme: options.scheme ?? "light",
		reducedMotion: options.moves === true ? "no-preference" : "reduce",
		locale: "en-US",
		timezoneId: "Europe/Berlin",
		permissions: ["clipboard-read", "clipboard-write"],
	});
	if (options.person) await context.addCookies(cookiesOf(options.person, url));
	const complaints: string[] = [];
	const failures: string[] = [];
	const known = [url, "data:", ...(options.elsewhere ?? [])];
	context.on("weberror", (error) => complaints.push(`thrown: ${error.error().message}`));
	context.on("console", (message) => {
		if (message.type() === "error" && !isExpected(message.text())) complaints.push(message.text());
	});
	context.on("request", (request) => {
		if (!known.some((start) => request.url().startsWith(start))) complaints.push(`asked ${request.url()}`);
	});
	context.on("response", (response) => {
		if (response.status() < 400) return;
		failures.push(`${response.status()} ${response.request().method()} ${new URL(response.url()).pathname}`);
	});
	context.on("requestfailed", (request) => {
		const reason = request.failure()?.errorText ?? "";
		if (reason !== "net::ERR_ABORTED")
			failures.push(`${reason} ${request.method()} ${new URL(request.url()).pathname}`);
	});
	context.setDefaultTimeout(WAIT_MS);
	const page = await context.newPage();
	return { page, context, complaints, failures, close: () => context.close() };
}

/** Signs the tab's person out and clears the storage. */
export async function becomeVisitor({ page, context }: Pick<Tab, "page" | "context">): Promise<void> {
	await page.evaluate("localStorage.clear(), sessionStorage.clear()");
	await page.goto("about:blank");
	await context.clearCookies();
}

export function cookiesOf(person: Person, url: string) {
	return [...person.cookies].map(([name, value]) => ({ name, value, url }));
}

/** True for the message that the browser logs for each refused request: the page explains these itself. */
function isExpected(text: string): boolean {
	return text.startsWith("Failed to load resource: the server responded with a status of");
}

/** Confirms that the shown secret is stored, and closes its dialog. */
export async function storeSecret(page: Page): Promise<void> {
	await page.getByLabel("I have stored it").check();
	await page.getByRole("button", { name: "Done" }).click();
}
