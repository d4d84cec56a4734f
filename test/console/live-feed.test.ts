import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { LiveRight, LiveRights, LiveTopic } from "../../src/console/live/live-feed.ts";
import { createLiveFeed } from "../../src/console/live/live-feed.ts";
import { localServer } from "../support/at-end.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const all: LiveRights = async (rights) => new Set(rights);
const rightOf = (userId: string) => ({ userId, sessionId: "s", accountId: null });

/** Serves the feed on a real port, so that a client can disconnect as a browser does. */
function serve() {
	const clock = createManualClock();
	const feed = createLiveFeed({ clock, log: silentLog, holding: all });
	let reads = 0;
	const topic = (user: string) => ({ name: `n ${user}`, event: "n", read: async () => ({ reads: ++reads }) });
	const server = localServer((request) => {
		const user = new URL(request.url).searchParams.get("user") ?? "";
		try {
			return feed.open([topic("all")], rightOf(user));
		} catch {
			return new Response(null, { status: 429 });
		}
	});
	return { feed, clock, url: `http://127.0.0.1:${server.port}`, reads: () => reads };
}

/** Opens a user's page; returns the data that it has received, and its end. */
function openPage(feed: ReturnType<typeof createLiveFeed>, topic: LiveTopic, userId: string) {
	const heard: string[] = [];
	const reader = (feed.open([topic], rightOf(userId)).body as ReadableStream<Uint8Array>).getReader();
	const ended = (async () => {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			heard.push(...(new TextDecoder().decode(value).match(/(?<=data: "?)[^"\n]+/g) ?? []));
		}
	})();
	return { heard, ended };
}

test("the live feed frees the stream and the topics of a closed page", async () => {
	const { feed, clock, url, reads } = serve();
	const leaving = Array.from({ length: 5 }, () => new AbortController());
	const pages = await Promise.all(leaving.map((one, user) => fetch(`${url}?user=${user}`, { signal: one.signal })));
	const readers = pages.map((page) => (page.body as ReadableStream<Uint8Array>).getReader());
	await Promise.all(readers.map((reader) => reader.read()));
	expect(feed.size()).toBe(5);
	const watched = reads();
	clock.advance(2_000);
	await waitFor(() => reads() === watched + 1, "the topic to be read");
	for (const one of leaving) one.abort();
	await waitFor(() => feed.size() === 0, "the pages to be forgotten");
	const before = reads();
	for (let tick = 0; tick < 5; tick++) {
		clock.advance(2_000);
		await Promise.resolve();
	}
	expect(reads()).toBe(before);
	feed.stop();
});

test("the live feed limits the number of pages of one person", async () => {
	const { feed, url } = serve();
	const leave = new AbortController();
	const pages = await Promise.all(Array.from({ length: 14 }, () => fetch(`${url}?user=a`, { signal: leave.signal })));
	expect(pages.filter((page) => page.status === 200)).toHaveLength(12);
	expect(pages.filter((page) => page.status === 429)).toHaveLength(2);
	leave.abort();
	feed.stop();
});

test("the live feed ends a page of the person with most pages above the total limit", async () => {
	const clock = createManualClock();
	const feed = createLiveFeed({ clock, log: silentLog, holding: all });
	const open = (userId: string) => (feed.open([], rightOf(userId)).body as ReadableStream<Uint8Array>).getReader();
	const readers = Array.from({ length: 2_000 }, (_, nth) => {
		if (nth === 1_990) clock.advance(1);
		return open(`u${nth % 1_990}`);
	});
	const newcomer = open("newcomer");
	expect(feed.size()).toBe(2_000);
	const [oldest, ...others] = [0, 1_990, 1].map((nth) => readers[nth] as (typeof readers)[number]);
	await oldest?.read();
	expect((await oldest?.read())?.done).toBe(true);
	for (const reader of [newcomer, ...others]) expect((await reader.read()).done).toBe(false);
	feed.stop();
	expect(feed.size()).toBe(0);
});

test("the live feed's stop ends every stream and makes new pages connect again later", async () => {
	const { feed, url } = serve();
	const page = await fetch(`${url}?user=a`);
	const text = page.text();
	await waitFor(() => feed.size() === 1, "the page to be open");
	feed.stop();
	expect(await text).toContain("event: n");
	expect(feed.size()).toBe(0);
	const late = await fetch(`${url}?user=b`);
	expect([late.status, late.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
	expect(await late.text()).toBe("retry: 2000\n\n");
	expect(feed.size()).toBe(0);
});

test("the live feed sends a page the changes since the last event that it received", async () => {
	const clock = createManualClock();
	const feed = createLiveFeed({ clock, log: silentLog, holding: all });
	let value = "before";
	const topic = { name: "n", event: "n", read: async () => value };
	const early = openPage(feed, topic, "a");
	await waitFor(() => early.heard.length === 1, "the first page to be greeted");
	value = "between";
	const late = openPage(feed, topic, "b");
	await waitFor(() => late.heard.length === 1, "the second page to be greeted");
	value = "before";
	clock.advance(2_000);
	await waitFor(() => late.heard.length === 2, "the second page to hear of the way back");
	expect(late.heard).toEqual(["between", "before"]);
	expect(early.heard).toEqual(["before"]);
	feed.stop();
	await Promise.all([early.ended, late.ended]);
});

test("the live feed sends no further event to a page that lost its right", async () => {
	const clock = createManualClock();
	let asked = 0;
	let ask: LiveRights = all;
	const holding: LiveRights = (rights) => {
		asked += 1;
		return ask(rights);
	};
	const feed = createLiveFeed({ clock, log: silentLog, holding });
	let value = 0;
	const gone = new Set<string>();
	let meanwhile = () => {};
	const read = async () => {
		meanwhile();
		return ++value;
	};
	const open = (userId: string) => openPage(feed, { name: "n", event: "n", read }, userId);
	const [a, b, c] = [open("a"), open("b"), open("c")];
	await waitFor(() => [a, b, c].every(({ heard }) => heard.length === 1), "all to be greeted");
	ask = async (rights) => new Set(rights.filter(({ userId }: LiveRight) => !gone.has(userId)));
	gone.add("a");
	meanwhile = () => void gone.add("b");
	asked = 0;
	clock.advance(2_000);
	await Promise.all([a.ended, b.ended]);
	expect([a.heard.length, b.heard.length]).toEqual([1, 1]);
	await waitFor(() => c.heard.length === 2, "the one whose right holds to hear more");
	expect(asked).toBe(1);
	ask = async () => {
		throw new Error("away");
	};
	clock.advance(2_000);
	await waitFor(() => asked === 2, "the rights to be asked for in vain");
	ask = all;
	clock.advance(2_000);
	await waitFor(() => c.heard.length === 3, "the news to come when rights can be asked for again");
	expect(c.heard).toEqual(["3", "4", "6"]);
	feed.stop();
	await c.ended;
});
