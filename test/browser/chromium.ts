import { existsSync } from "node:fs";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { chromium } from "playwright-core";
import type { Person } from "../console/person.ts";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** Where there is no browser the tests are skipped, and say so. */
export const hasChromium = CHROMIUM !== undefined;
if (!hasChromium) console.log("browser tests are skipped: there is no /usr/bin/chromium");

export async function launch(): Promise<Browser> {
	return chromium.launch({
		executablePath: CHROMIUM ?? "",
		headless: true,
		args: [
			"--no-sandbox",
			"--disable-gpu",
			"--disable-quic",
			"--no-first-run",
			"--disable-background-networking",
			"--disable-component-update",
			"--disable-sync",
		],
	});
}

export interface Tab {
	readonly page: Page;
	readonly context: BrowserContext;
	/** What the browser complained of: refused by the policy, thrown by a script. */
	readonly complaints: string[];
	close(): Promise<void>;
}

/** A tab with a window of its own; signed in as somebody, if given. Nothing but the service can be reached. */
export async function openTab(
	browser: Browser,
	url: string,
	options: { width?: number; height?: number; scheme?: "light" | "dark"; person?: Person } = {},
): Promise<Tab> {
	const context = await browser.newContext({
		baseURL: url,
		viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
		colorScheme: options.scheme ?? "light",
		locale: "en-US",
		timezoneId: "Europe/Berlin",
		permissions: ["clipboard-read", "clipboard-write"],
	});
	if (options.person) {
		const cookies = [...options.person.cookies].map(([name, value]) => ({ name, value, url }));
		await context.addCookies(cookies);
	}
	const page = await context.newPage();
	page.setDefaultTimeout(10_000);
	const complaints: string[] = [];
	page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
	page.on("console", (message) => {
		if (message.type() === "error" && !isExpected(message.text())) complaints.push(message.text());
	});
	page.on("request", (request) => {
		if (!request.url().startsWith(url) && !request.url().startsWith("data:")) complaints.push(`asked ${request.url()}`);
	});
	return { page, context, complaints, close: () => context.close() };
}

/** The browser reports each refused request by itself; the page shows it in words. */
function isExpected(text: string): boolean {
	return text.startsWith("Failed to load resource: the server responded with a status of");
}
