import { describe, expect, test } from "bun:test";
import packageJson from "../../package.json" with { type: "json" };
import { systemClock } from "../../src/base/clock.ts";
import { createStatusStore, daySinceEpoch, type ServiceLevel } from "../../src/status/status-history.ts";
import { statusPage } from "../../src/status/status-page.ts";
import { withDatabase } from "../support/database.ts";
import { findViolation } from "../support/json-schema.ts";
import { withService } from "../support/service.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { waitFor } from "../support/wait.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by hand.
type Any = any;

/** A time at which no observation is made. */
const NOW_MS = Date.parse("2026-11-20T12:00:07.123Z");
const TODAY = daySinceEpoch(NOW_MS);
const NAME = `Sly </span><script>alert("1")</script> & 'co'`;
const url = "http://127.0.0.1:9";
const chat = deployment({ id: "org/chat", url });
const vectors = { id: "vectors", kind: "embedding", url, rates: 'input: "1"' } as const;
const embedding = deployment({ ...vectors, extra: `    name: ${JSON.stringify(NAME)}` });

const { statements, url: databaseUrl } = await withDatabase();
/** A minute of a past day, or of today, in which these subjects had this level. */
const minute = (ago: number, nth: number, level: ServiceLevel, ...subjects: string[]) => ({
	minute: (TODAY - ago) * 1_440 + 600 + nth,
	levels: new Map(subjects.map((subject) => [subject, level])),
});
await createStatusStore(statements).add([
	...[100, 89, 3].map((ago) => minute(ago, 0, "operational", "service", "model:org/chat", "model:gone")),
	...[0, 1, 2].map((nth) => minute(0, nth, "operational", "service", "model:org/chat", "model:vectors")),
	...[3, 4, 5].map((nth) => minute(0, nth, "down", "model:org/chat")),
]);
const service = await withService({
	models: `${chat}\n${embedding}`,
	clock: { ...systemClock, wallMs: () => NOW_MS },
	env: { DATABASE_URL: databaseUrl },
});
const status = async (): Promise<Any> => (await fetch(`${service.url}/status`)).json();
const page = () => fetch(`${service.url}/status`, { headers: { accept: "text/html" } });
await waitFor(async () => (await status()).history.as_of !== null, "the history to be read");
const modelOf = ({ history }: Any, id: string) => history.models.find((model: Any) => model.id === id);

test("the status JSON has 90 days of the deployed models, as OpenAPI describes it", async () => {
	const answer = await status();
	expect(Object.keys(answer)).toEqual(["object", "status", "version", "checked_at", "services", "models", "history"]);
	expect(answer.version).toBe(packageJson.version);
	const { history } = answer;
	expect([history.from, history.to]).toEqual(["2026-08-23", "2026-11-20"]);
	expect(modelOf(answer, "org/chat").days.map((day: Any) => day.date)).toEqual([
		"2026-08-23",
		"2026-11-17",
		"2026-11-20",
	]);
	expect(modelOf(answer, "org/chat")).toMatchObject({
		days: [{}, {}, { operational_minutes: 3, degraded_minutes: 0, down_minutes: 3 }],
		// Available in three of today's six minutes, and in the one minute of each of the two past days.
		uptime_percent: 62.5,
	});
	expect(history.models.map((model: Any) => model.id)).toEqual(["org/chat", "vectors"]);
	expect(Object.keys(history.services)).toEqual(["chat", "completions", "embeddings"]);
	const document = await (await fetch(`${service.url}/openapi.json`)).json();
	const { schema } = document.paths["/status"].get.responses["200"].content["application/json"];
	expect(findViolation(document, schema, answer)).toBeUndefined();
});

test("the status page describes every day and escapes model names", async () => {
	const response = await page();
	const html = await response.text();
	expect(html).toContain("<span>2026-11-20 (today): 50.00 % operational, 3 minutes down</span>");
	expect(html).toContain("<span>2026-11-17: 100 % operational, 23 h 59 min without data</span>");
	expect(html).toContain("<span>2026-11-18: no data</span>");
	expect(html).not.toContain("2026-08-22");
	expect(html).toContain("62.50 % uptime");
	expect(html).toContain(`Version ${packageJson.version}.`);
	expect(html).toContain("Sly &lt;/span&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#x27;co&#x27;");
	expect(html).not.toContain("<script");
	expect(html).not.toContain(" style=");
	expect(html).not.toContain("gone");
	expect(html.match(/<ol class="days"/g)).toHaveLength(6);
	expect(html.match(/<li class="(up|degraded|partly|down|none)"><span>/g)).toHaveLength(6 * 90);
	const style = /<style>([\s\S]*)<\/style>/.exec(html)?.[1] as string;
	const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
	expect(response.headers.get("content-security-policy")).toContain(`style-src 'sha256-${hash}'`);
});

test("the status page is compressed for clients that accept gzip", async () => {
	const ask = (encoding: string) => fetch(`${service.url}/status`, { headers: { "accept-encoding": encoding } });
	const [plain, packed] = [await ask("identity"), await ask("gzip")];
	expect(plain.headers.get("content-encoding")).toBeNull();
	expect(packed.headers.get("content-encoding")).toBe("gzip");
	expect(Object.keys(await packed.json())).toEqual(Object.keys(await plain.json()));
});

test("the status page hides a removed model and shows its history when it returns", async () => {
	await service.serve(embedding);
	const without = await status();
	expect(without.history.models.map((model: Any) => model.id)).toEqual(["vectors"]);
	expect(Object.keys(without.history.services)).toEqual(["embeddings"]);
	expect(await (await page()).text()).not.toContain("org/chat");
	await service.serve(`${chat}\n${embedding}`);
	expect(modelOf(await status(), "org/chat").days).toHaveLength(3);
});

describe("the age of the status history", () => {
	const answer = (asOf: string | null): Any => ({
		object: "status",
		status: "operational",
		version: "0.0.0",
		checked_at: "2026-11-20T12:00:00.000Z",
		services: {},
		models: [],
		history: {
			as_of: asOf,
			from: "2026-08-23",
			to: "2026-11-20",
			service: { uptime_percent: null, days: [] },
			services: {},
			models: [],
		},
	});

	test.each([
		[null, "The status history is not available yet."],
		["2026-11-20T11:57:00.000Z", "The history is 3 minutes old."],
		["2026-11-20T05:10:00.000Z", "The history is 6 h 50 min old."],
	])("is shown in words for a history read at %p", (asOf, text) =>
		expect(statusPage(answer(asOf), "en")).toContain(text),
	);

	test("is translated into the page's language", () => {
		const page = statusPage(answer("2026-11-20T05:10:00.000Z"), "de");
		expect(page).toContain('Stand: <time datetime="2026-11-20T12:00:00.000Z">20.11.2026 12:00:00 UTC</time>');
		expect(page).toContain(" Alter des Verlaufs: 6 Std 50 Min.</p>");
	});

	test("is hidden if the history is recent", () => {
		expect(statusPage(answer("2026-11-20T11:58:00.000Z"), "en")).not.toContain("The history");
	});
});
