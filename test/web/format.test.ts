import { expect, test } from "bun:test";
import { pageAfterSignIn } from "../../src/web/navigation.ts";
import { readUsageFilter } from "../../src/web/range.ts";
import { matchPath, safeNextPath } from "../../src/web/router.tsx";
import { chatSnippets } from "../../src/web/snippets/chat.ts";
import { formatAgo, formatDuration } from "../../src/web/texts.tsx";

test("durations and ages are shown in the largest fitting unit", () => {
	expect([
		formatDuration(8.44),
		formatDuration(84),
		formatDuration(2_310),
		formatDuration(200_000),
		formatDuration(null),
	]).toEqual(["8.4 ms", "84 ms", "2.31 s", "3 min 20 s", "–"]);
	expect([formatAgo(0, 5_000), formatAgo(0, 180_000), formatAgo(86_400_000 * 3, 0)]).toEqual([
		"just now",
		"3 min ago",
		"in 3 d",
	]);
});

test("a sign-in leads only to paths of this site, never to another site", () => {
	for (const next of [
		null,
		"",
		"//evil.example",
		"/\\evil.example",
		"/\t/evil.example",
		"https://evil.example",
		"javascript:alert(1)",
		"keys",
	]) {
		expect(safeNextPath(next)).toBe("/");
	}
	expect(safeNextPath("/keys?create=1")).toBe("/keys?create=1");
});

test("a sign-in leads to the requested page, or else to the viewer's first page", () => {
	const opened = (next: string) => [false, true].map((operator) => pageAfterSignIn(next, { user: { operator } }));
	expect(opened("/keys?create=1")).toEqual(["/keys?create=1", "/keys?create=1"]);
	expect(opened("/")).toEqual(["/overview", "/operator"]);
});

test("the router decodes path parameters once, and keeps slashes of a wildcard", () => {
	expect(matchPath("/models/*", "/models/qwen/qwen3%2D32b")).toMatchObject({ id: "qwen/qwen3-32b" });
	expect(matchPath("/models/*", "/models/qwen%2Fqwen3/")).toMatchObject({ id: "qwen/qwen3" });
	expect(matchPath("/models/*", "/models/a%252Fb")).toMatchObject({ id: "a%2Fb" });
	expect(matchPath("/models/*", "/models/100%")).toMatchObject({ id: "100%" });
	expect(matchPath("/models/*", "/models/")).toBeUndefined();
	expect(matchPath("/keys/:id", "/keys/key_1/")).toMatchObject({ id: "key_1" });
	expect(matchPath("/keys/:id", "/keys")).toBeUndefined();
	expect(matchPath("/keys", "/keys/key_1")).toBeUndefined();
	expect(matchPath("/", "/")).toEqual({});
});

test("the usage filter ignores unknown values, and covers whole days", () => {
	const now = Date.UTC(2026, 10, 21, 13, 45);
	expect(readUsageFilter(new URLSearchParams("range=7d&status=nonsense&model=m"), now)).toEqual({
		from: Date.UTC(2026, 10, 15),
		to: now,
		bucket: "day",
		model: "m",
		key: null,
		project: null,
		status: null,
	});
	expect(readUsageFilter(new URLSearchParams("range=24h"), now).bucket).toBe("hour");
	// The log of a linked range must begin at a whole hour or day, because usage is summed per hour and day.
	for (const range of ["24h", "7d", "30d", "month", "90d", "365d"]) {
		const { from, bucket } = readUsageFilter(new URLSearchParams(`range=${range}`), now);
		expect([range, (from ?? 0) % (bucket === "hour" ? 3_600_000 : 86_400_000)]).toEqual([range, 0]);
	}
	expect(readUsageFilter(new URLSearchParams("range=month"), now).from).toBe(Date.UTC(2026, 10, 1));
});

test("a code snippet escapes quotes in its values", () => {
	const messages = [{ role: "user", content: `it's "quoted"\nand more` }];
	const [curl, python] = chatSnippets({
		baseUrl: "http://x/v1",
		model: "m",
		messages,
		options: { stop: null, logprobs: true },
	});
	expect(curl?.code).toContain(`it'\\''s \\"quoted\\"\\nand more`);
	expect(python?.code).toContain("stop=None,");
	expect(python?.code).toContain("logprobs=True,");
});
