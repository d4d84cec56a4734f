import { describe, expect, test } from "bun:test";
import packageJson from "../../package.json" with { type: "json" };
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { daySinceEpoch } from "../../src/status/status-history.ts";
import { statusPage } from "../../src/status/status-page.ts";
import { createStatusStore } from "../../src/status/status-store.ts";
import { violationOf } from "../support/json-schema.ts";
import { type TestService, withService } from "../support/service.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { type UpstreamServer, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by hand.
type Any = any;

/** A moment far from the middle of a minute, when observations are made. */
const START_MS = Date.parse("2026-11-20T12:00:07.123Z");
const TODAY = daySinceEpoch(START_MS);
const FIRST_LOOK_MS = 22_877;

/** A real clock with a calendar that stands still and observations that run on demand. */
interface LookClock extends Clock {
	/**
	 * Advances the calendar to the next observation. If an instance's lease ended meanwhile, it serves again after its
	 * renewal.
	 */
	arrive(): void;
	look(): void;
}

function createLookClock(): LookClock {
	let nowMs = START_MS;
	let capturing = false;
	let due: { atMs: number; run: () => void } | undefined;
	return {
		wallMs: () => nowMs,
		monotonicMs: systemClock.monotonicMs,
		after(delayMs, run) {
			if (!capturing && delayMs !== FIRST_LOOK_MS) return systemClock.after(delayMs, run);
			capturing = false;
			due = { atMs: nowMs + delayMs, run };
			return () => {};
		},
		arrive() {
			nowMs = due?.atMs ?? nowMs;
		},
		look() {
			// An observation's first timer is that of the next observation.
			capturing = true;
			due?.run();
		},
	};
}

const NAME = `Sly </span><script>alert("1")</script> & 'co'`;
const clocks = [createLookClock(), createLookClock()] as const;
const chats = withUpstream("vllm");
const vectors = withUpstream("vllm");

const chat = () => deployment({ id: "org/chat", url: chats.url });
const embedding = () =>
	deployment({
		id: "vectors",
		kind: "embedding",
		url: vectors.url,
		rates: 'input: "1"',
		extra: `    name: ${JSON.stringify(NAME)}`,
	});

const pastMinute = (ago: number, subject: string) => ({
	minute: (TODAY - ago) * 1_440 + 600,
	levels: new Map([[subject, "operational" as const]]),
});

/** Requires the answer long before a statement to Postgres would time out. */
const status = async ({ url }: TestService): Promise<Any> =>
	(await fetch(`${url}/status`, { signal: AbortSignal.timeout(3_000) })).json();
const page = ({ url }: TestService) =>
	fetch(`${url}/status`, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(3_000) });
const modelOf = ({ history }: Any, id: string) => history.models.find((model: Any) => model.id === id);
const today = (track: Any) => track.days.at(-1);

const common = { models: `${chat()}\n${embedding()}`, limits: "  breaker_cool_s: 1" };
const service = await withService({ ...common, clock: clocks[0] });
await createStatusStore(service.db.statements).add(
	[100, 89, 3].flatMap((ago) => ["service", "model:org/chat", "model:gone"].map((subject) => pastMinute(ago, subject))),
);
/** A second instance on the same database, started when the history exists. */
const other = await withService({ ...common, clock: clocks[1], env: { DATABASE_URL: service.db.url } });
// A server counts as known only after its first health check.
await setHealth(503, chats, vectors);
await setHealth(200, chats, vectors);

/** Makes servers fail or recover, and waits until both instances have noticed. */
async function setHealth(code: 200 | 503, ...servers: readonly UpstreamServer[]): Promise<void> {
	for (const server of servers) server.setHealth(code);
	const ids = servers.map((server) => (server === chats ? "org/chat" : "vectors"));
	const expected = code === 200 ? "connected" : "unavailable";
	for (const one of [service, other]) {
		const noticed = async () => {
			const { models } = await status(one);
			return ids.every((id) => models.find((model: Any) => model.id === id).status === expected);
		};
		await waitFor(noticed, `${ids} to be ${expected}`, 20_000);
	}
}

/** For each minute both instances observe once, then both load the result. */
async function minutes(count: number): Promise<void> {
	for (let minute = 0; minute < count; minute += 1) {
		await Promise.all([arriveAt(service, clocks[0]), arriveAt(other, clocks[1])]);
		await lookAt(service, clocks[0]);
		await lookAt(other, clocks[1]);
	}
}

async function arriveAt(one: TestService, clock: LookClock): Promise<void> {
	clock.arrive();
	await waitFor(() => one.app.instanceLease.gate.isOpen(), "the lease to be renewed", 20_000);
}

async function lookAt(one: TestService, clock: LookClock): Promise<void> {
	clock.look();
	const asOf = new Date(clock.wallMs()).toISOString();
	await waitFor(async () => (await status(one)).history.as_of === asOf, "the look to be written and read", 20_000);
}

test("minutes of two instances count once, with a model's downtime", async () => {
	await minutes(2);
	await setHealth(503, chats);
	await minutes(3);
	await setHealth(200, chats);
	await minutes(1);
	const answer = await status(other);
	expect(answer.status).toBe("operational");
	expect(today(modelOf(answer, "org/chat"))).toEqual({
		date: "2026-11-20",
		operational_minutes: 3,
		degraded_minutes: 0,
		down_minutes: 3,
	});
	expect(today(modelOf(answer, "vectors"))).toMatchObject({ operational_minutes: 6, down_minutes: 0 });
	expect(today(answer.history.service)).toMatchObject({ operational_minutes: 3, degraded_minutes: 3, down_minutes: 0 });
	expect(today(answer.history.services.chat)).toMatchObject({ operational_minutes: 3, down_minutes: 3 });
	expect(today(answer.history.services.embeddings)).toMatchObject({ operational_minutes: 6 });
	// Available in three of today's six minutes and in the one minute of each past day.
	expect(modelOf(answer, "org/chat").uptime_percent).toBe(62.5);
	expect(answer.history.service.uptime_percent).toBe(100);
}, 30_000);

test("the JSON has 90 days of the deployed models, as described", async () => {
	const answer = await status(other);
	expect(Object.keys(answer)).toEqual(["object", "status", "version", "checked_at", "services", "models", "history"]);
	expect(answer.version).toBe(packageJson.version);
	const { history } = answer;
	expect([history.from, history.to]).toEqual(["2026-08-23", "2026-11-20"]);
	expect(modelOf(answer, "org/chat").days.map((day: Any) => day.date)).toEqual([
		"2026-08-23",
		"2026-11-17",
		"2026-11-20",
	]);
	expect(history.models.map((model: Any) => model.id)).toEqual(["org/chat", "vectors"]);
	expect(Object.keys(history.services)).toEqual(["chat", "completions", "embeddings"]);
	const document = await (await fetch(`${other.url}/openapi.json`)).json();
	const { schema } = document.paths["/status"].get.responses["200"].content["application/json"];
	expect(violationOf(document, schema, answer)).toBeUndefined();
});

test("the page describes every day and escapes model names", async () => {
	const response = await page(other);
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

test("the page is compressed for clients that accept gzip", async () => {
	const ask = (encoding: string) => fetch(`${other.url}/status`, { headers: { "accept-encoding": encoding } });
	const [plain, packed] = [await ask("identity"), await ask("gzip")];
	expect(plain.headers.get("content-encoding")).toBeNull();
	expect(packed.headers.get("content-encoding")).toBe("gzip");
	expect(Object.keys(await packed.json())).toEqual(Object.keys(await plain.json()));
});

test("the page hides a model that left the catalogue, and restores its history with it", async () => {
	await other.serve(embedding(), "  breaker_cool_s: 1");
	const without = await status(other);
	expect(without.history.models.map((model: Any) => model.id)).toEqual(["vectors"]);
	expect(Object.keys(without.history.services)).toEqual(["embeddings"]);
	expect(await (await page(other)).text()).not.toContain("org/chat");
	await other.serve(`${chat()}\n${embedding()}`, "  breaker_cool_s: 1");
	expect(modelOf(await status(other), "org/chat").days).toHaveLength(3);
});

describe("the age of the history", () => {
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
	])("as of %p", (asOf, text) => expect(statusPage(answer(asOf), "en")).toContain(text));

	test("is translated", () => {
		const page = statusPage(answer("2026-11-20T05:10:00.000Z"), "de");
		expect(page).toContain('Stand: <time datetime="2026-11-20T12:00:00.000Z">20.11.2026 12:00:00 UTC</time>');
		expect(page).toContain(" Alter des Verlaufs: 6 Std 50 Min.</p>");
	});

	test("is not shown for a recent history", () => {
		expect(statusPage(answer("2026-11-20T11:58:00.000Z"), "en")).not.toContain("The history");
	});
});
