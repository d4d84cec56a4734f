import { beforeAll, expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { readOwnBrand } from "../../src/console/brand/shown-brand.ts";
import { createPages } from "../../src/console/pages/pages.ts";

const brand = await readOwnBrand({ configPath: null, env: {}, serviceName: "service" });
const log = createLog({ level: "error", write: () => undefined });
const pages = createPages({ log, brand }, { isHttps: () => true });
const get = async (path: string, headers: Record<string, string> = {}, method = "GET") =>
	pages.respond(new Request(`http://service.test${path}`, { method, headers }));

let html = "";
beforeAll(async () => {
	html = (await (await get("/sign-in"))?.text()) ?? "";
}, 30_000);

test("a console page is never cached, and its policy has a new nonce each time", async () => {
	const [one, two] = [await get("/overview"), await get("/keys/key_1")];
	const nonceOf = (response: Response | undefined) =>
		/style-src 'self' 'nonce-([^']{20,})'/.exec(response?.headers.get("content-security-policy") ?? "")?.[1];
	expect(one?.status).toBe(200);
	expect(one?.headers.get("cache-control")).toBe("no-store");
	expect(one?.headers.get("content-security-policy")).toContain("script-src 'self';");
	expect(one?.headers.get("content-security-policy")).not.toContain("unsafe");
	expect(one?.headers.get("strict-transport-security")).toBe("max-age=31536000");
	expect(nonceOf(one)).toBeDefined();
	expect(nonceOf(one)).not.toBe(nonceOf(two));
	expect(await one?.text()).toContain(`content="${nonceOf(one)}"`);
	for (const script of html.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)) {
		expect(script[1]).toContain('src="/assets/');
		expect(script[2]).toBe("");
	}
	expect(html).not.toMatch(/<style|\son[a-z]+=|style=/);
});

test("the files of a console page exist and are cached for a year", async () => {
	const paths = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((match) => match[1] ?? "");
	expect(paths.length).toBeGreaterThanOrEqual(4);
	for (const path of paths) {
		const plain = await get(path);
		const packed = await get(path, { "accept-encoding": "gzip, br" });
		expect(plain?.status).toBe(200);
		expect(plain?.headers.get("cache-control")).toContain("immutable");
		expect(packed?.headers.get("content-encoding")).toBe("gzip");
		const unpacked = Bun.gunzipSync(new Uint8Array((await packed?.arrayBuffer()) ?? new ArrayBuffer(0)));
		expect(new TextDecoder().decode(unpacked)).toBe((await plain?.text()) ?? "");
	}
});

test("the lazy chunks of a console page exist and load nothing from other sites", async () => {
	const main = /src="(\/assets\/index-[^"]+)"/.exec(html)?.[1] ?? "";
	const script = (await (await get(main))?.text()) ?? "";
	const chunks = [...script.matchAll(/import\("([^"]+)"\)/g)].map((match) => match[1] ?? "");
	expect(chunks.length).toBeGreaterThan(5);
	for (const chunk of chunks) expect((await get(chunk))?.status).toBe(200);
	// `jsxDEV` occurs only in development builds, which also contain warnings.
	expect(script.includes("jsxDEV")).toBe(false);
});

test("a mistyped address gets a page for browsers and JSON for programs", async () => {
	expect((await get("/nowhere", { accept: "text/html,*/*" }))?.status).toBe(404);
	expect(await get("/nowhere", { accept: "application/json" })).toBeUndefined();
	for (const path of ["/v1/nothing", "/api/nothing", "/assets/nothing.js", "/metrics", "/openapi.json"]) {
		expect(await get(path, { accept: "text/html" })).toBeUndefined();
	}
	expect(await get("/keys", {}, "POST")).toBeUndefined();
	expect(await (await get("/keys", {}, "HEAD"))?.text()).toBe("");
});
