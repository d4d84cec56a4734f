import { assert } from "../../base/assert.ts";
import { newRequestId } from "../../base/id.ts";
import { requestLanguage } from "../../base/language.ts";
import type { Log } from "../../base/log.ts";
import type { OwnBrand } from "../brand/shown-brand.ts";
import { PAGE_POLICY, securityHeaders } from "../security-headers.ts";
import { acceptsGzip, compressResponse } from "./gzip.ts";
import scheme from "./scheme.js" with { type: "text" };

interface Asset {
	readonly plain: Uint8Array<ArrayBuffer>;
	readonly gzip: Uint8Array<ArrayBuffer>;
	readonly type: string;
}

const TYPES: Readonly<Record<string, string>> = {
	js: "text/javascript; charset=utf-8",
	css: "text/css; charset=utf-8",
	svg: "image/svg+xml",
};
const NONCE_MARK = "CSP_NONCE";
const NONCE_BYTES = 16;

/** First path segments that have a page; "" is the start page. */
const PLACES: ReadonlySet<string> = new Set([
	"",
	"docs",
	"models",
	"sign-in",
	"sign-up",
	"verify",
	"reset",
	"invite",
	"overview",
	"keys",
	"credit",
	"usage",
	"requests",
	"batches",
	"playground",
	"projects",
	"settings",
	"operator",
]);
const NOT_FOR_PEOPLE = /^\/(v1|api|assets|livez|readyz|metrics|openapi\.json)(\/|$)/;

const ICON_COLOR = "#17637f";
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 18 18" fill="none" stroke="${ICON_COLOR}" stroke-width="2" stroke-linecap="round"><path d="M3 16V5M3 7.5h12M9 7.5V11M15 7.5V11"/><circle cx="3" cy="3.5" r="1.5"/></svg>`;

/**
 * Serves the console's pages: one document, whose script draws the page of the address, and its assets. The binary
 * contains them (`pages-embedded.ts`); from source they are bundled on the first request, in about 0.3 s. Bun's HTML
 * imports are not used: its server sets the headers itself and adds a script in development. Scripts come only from
 * this origin, and none is inline. Style elements of the component library have a nonce, new for each response. Assets
 * have a hash in their name and are cached for a year; the document is never cached.
 */
export function createPages(deps: { log: Log; brand: OwnBrand }, options: { isHttps: () => boolean }) {
	let loading: ReturnType<typeof loadBundle> | undefined;
	function bundle() {
		loading ??= loadBundle(deps.brand).catch((error) => {
			// A failure, such as a full disk, may be temporary: the next request bundles again.
			loading = undefined;
			throw error;
		});
		return loading;
	}

	async function page(request: Request, status: number): Promise<Response> {
		const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))).toString("base64");
		const language = requestLanguage(request.headers);
		const html = (await bundle()).documents[language].join(nonce);
		const response = new Response(request.method === "HEAD" ? null : html, {
			status,
			headers: {
				"content-type": "text/html; charset=utf-8",
				"content-language": language,
				vary: "accept-language, cookie",
			},
		});
		return securityHeaders(await compressResponse(request, response), {
			requestId: newRequestId().requestId,
			isHttps: options.isHttps(),
			policy: PAGE_POLICY.replace("style-src 'self'", `style-src 'self' 'nonce-${nonce}'`),
		});
	}

	return {
		async respond(request: Request): Promise<Response | undefined> {
			if (request.method !== "GET" && request.method !== "HEAD") return undefined;
			const { pathname } = new URL(request.url);
			try {
				if (pathname.startsWith("/assets/")) return assetResponse(request, (await bundle()).assets.get(pathname));
				if (pathname === "/favicon.ico") return Response.redirect("/assets/icon.svg", 302);
				if (NOT_FOR_PEOPLE.test(pathname)) return undefined;
				if (PLACES.has(pathname.split("/")[1] ?? "")) return await page(request, 200);
				// A browser gets a page for a mistyped address; a program gets the JSON error.
				const wantsHtml = request.headers.get("accept")?.includes("text/html") ?? false;
				return wantsHtml ? await page(request, 404) : undefined;
			} catch (error) {
				deps.log.error("the pages cannot be served", { error });
				return new Response("The pages cannot be served. The log says why.\n", {
					status: 500,
					headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
				});
			}
		},
	};
}

function assetResponse(request: Request, asset: Asset | undefined): Response | undefined {
	if (!asset) return undefined;
	const isPacked = acceptsGzip(request);
	const headers: Record<string, string> = {
		"content-type": asset.type,
		"cache-control": "public, max-age=31536000, immutable",
		"x-content-type-options": "nosniff",
		"cross-origin-resource-policy": "same-origin",
		// An SVG may contain a script, which must not run when a browser opens the file as a document.
		...(asset.type === TYPES.svg ? { "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'" } : {}),
		vary: "accept-encoding",
	};
	if (isPacked) headers["content-encoding"] = "gzip";
	const body = isPacked ? asset.gzip : asset.plain;
	return new Response(request.method === "HEAD" ? null : body, { headers });
}

/** `documents` has the HTML document per language, split where the nonce is inserted. */
async function loadBundle({ shown, logo }: OwnBrand) {
	const files = await readFiles();
	const html = files["index.html"];
	if (html === undefined) throw new Error("the bundle has no document");
	const assets = new Map<string, Asset>();
	const add = (name: string, text: string) => {
		const type = TYPES[name.split(".").pop() ?? ""] ?? "application/octet-stream";
		assets.set(`/assets/${name}`, { plain: new TextEncoder().encode(text), gzip: Bun.gzipSync(text), type });
	};
	for (const [name, text] of Object.entries(files)) if (name !== "index.html") add(name, text);
	// A separate script, because the theme must be set before the first paint, and the bundle runs later.
	const schemeName = `scheme-${Bun.hash(scheme).toString(36)}.js`;
	add(schemeName, scheme);
	add("icon.svg", shown.palette === null ? ICON : ICON.replace(ICON_COLOR, shown.palette.light.text));
	if (logo !== null) assets.set(logo.path, { plain: logo.bytes, gzip: Bun.gzipSync(logo.bytes), type: logo.type });
	// The brand is data in the document, because pages need it before the first paint.
	const head = [
		`<title>${Bun.escapeHTML(shown.name)}</title>`,
		`<meta name="brand" content="${Bun.escapeHTML(JSON.stringify(shown))}">`,
		`<link rel="icon" href="${shown.logoUrl ?? "/assets/icon.svg"}">`,
		`<script src="/assets/${schemeName}"></script>`,
	].join("");
	// A replacer function, because a replacement string would interpret patterns such as `$&` in a name.
	const english = html.replace(/<title>.*<\/title>/, () => head);
	return { documents: { en: english.split(NONCE_MARK), de: inGerman(english, files).split(NONCE_MARK) }, assets };
}

/** German for the document's static content. The script draws all other content in the document's language. */
const GERMAN: Readonly<Record<string, string>> = {
	'<html lang="en">': '<html lang="de">',
	"Prepaid access to open models over the chat-completion interface.":
		"Zugang zu offenen Modellen auf Guthabenbasis, über die Chat-Completions-Schnittstelle.",
	"The console needs JavaScript. The inference interface under /v1 does not.":
		"Die Konsole braucht JavaScript. Die Schnittstelle für Anfragen unter /v1 braucht es nicht.",
};

/** Deferred scripts run in the document's order, so the texts are loaded before a page is drawn. */
function inGerman(english: string, files: Readonly<Record<string, string>>): string {
	const texts = Object.keys(files).find((name) => name.startsWith("german-texts-"));
	assert(texts !== undefined, "the texts of each language are bundled");
	const document = english.replace("<script", () => `<script type="module" src="/assets/${texts}"></script><script`);
	return Object.entries(GERMAN).reduce((page, [text, german]) => {
		assert(page.includes(text), "the document has what stands in it in another language");
		return page.replace(text, () => german);
	}, document);
}

async function readFiles(): Promise<Record<string, string>> {
	if (!import.meta.dir.startsWith("/$bunfs/")) return (await import("./pages-bundle.ts")).bundlePages();
	return (await import("./pages-embedded.ts")).embeddedPages;
}
