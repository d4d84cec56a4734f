import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { Person } from "../console/person.ts";

/** The first is the same browser without windows: it draws and scripts alike, for two thirds of the work. */
const CHROMIUM = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) =>
	existsSync(path),
);

/** Where there is no browser the tests are skipped, and say so. */
export const hasChromium = CHROMIUM !== undefined;
if (!hasChromium)
	console.log("browser tests are skipped: there is neither /usr/bin/chromium-headless-shell nor /usr/bin/chromium");

/** For each thing that is waited for: a machine that tests beside other work is slow, and only a failure waits so long. */
const WAIT_MS = 60_000;

/**
 * The features that the driver switches off, since only the last such list counts, and the browser's own windows, which
 * cost half a second of a processor for each tab.
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
			// There is none: a process of its own for it is a twelfth more work.
			"--in-process-gpu",
			"--disable-quic",
			"--no-first-run",
			"--disable-background-networking",
			"--disable-component-update",
			"--disable-sync",
			// Pages live for seconds: what these compilers make of their scripts is hardly ever run.
			"--js-flags=--no-maglev,--no-opt",
			`--disable-features=${FEATURES_OFF}`,
		],
	});
}

export interface Tab {
	readonly page: Page;
	readonly context: BrowserContext;
	/** What the browser complained of: refused by the policy, thrown by a script, a request that went elsewhere. */
	readonly complaints: string[];
	/** Requests that failed or were answered with an error: `403 POST /api/…`. What a page leaves behind is none. */
	readonly failures: string[];
	close(): Promise<void>;
}

export interface TabOptions {
	readonly width?: number;
	readonly height?: number;
	readonly scheme?: "light" | "dark";
	readonly person?: Person;
	/**
	 * What is opened and closed moves, as it does for most; else it is there at once, as for who wants no motion. A dialog that fades in and out
	 * has the whole window drawn for each frame, which is more than half of what it costs.
	 */
	readonly moves?: boolean;
	/** Other origins that its pages may ask. */
	readonly elsewhere?: readonly string[];
}

/**
 * A tab with a window of its own; signed in as somebody, if given. A request to anything but the service and `elsewhere`
 * is a complaint. Windows that its pages open are watched as well.
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

/** Whoever was signed in there is not any more, and nothing of him is kept. */
export async function becomeNobody({ page, context }: Pick<Tab, "page" | "context">): Promise<void> {
	await page.evaluate("localStorage.clear(), sessionStorage.clear()");
	await page.goto("about:blank");
	await context.clearCookies();
}

export function cookiesOf(person: Person, url: string) {
	return [...person.cookies].map(([name, value]) => ({ name, value, url }));
}

/** The browser reports each refused request by itself; the page shows it in words. */
function isExpected(text: string): boolean {
	return text.startsWith("Failed to load resource: the server responded with a status of");
}

/** Confirms that the shown secret is stored, and closes its dialog. */
export async function storeSecret(page: Page): Promise<void> {
	await page.getByLabel("I have stored it").check();
	await page.getByRole("button", { name: "Done" }).click();
}
