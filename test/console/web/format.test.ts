import { expect, test } from "bun:test";
import {
	formatAgo,
	formatDuration,
	formatRate,
	formatUsd,
	formatUsdExact,
	formatUsdShort,
	usdDecimals,
} from "../../../src/console/web/format.ts";
import { qrModules } from "../../../src/console/web/qr.ts";
import { filterOf } from "../../../src/console/web/range.ts";
import { matchPath, safeNext } from "../../../src/console/web/router.tsx";
import { chatSnippets } from "../../../src/console/web/snippets.ts";

test("amounts: two decimals from a dollar on, four below, more where four would show nothing; the sign stands first", () => {
	const cases: [number, string][] = [
		[0, "$0.00"],
		[1, "$0.000000001"],
		[19_999, "$0.00002"],
		[3_120, "$0.0000031"],
		[312_450, "$0.0003"],
		[50_000_000, "$0.05"],
		[999_999_999, "$1.00"],
		[1_000_000_000, "$1.00"],
		[1_204_500_000_000, "$1,204.50"],
		[9_007_199_254_740_991, "$9,007,199.25"],
		[-3_000_000_000, "−$3.00"],
	];
	expect(cases.map(([nanoUsd]) => formatUsd(nanoUsd))).toEqual(cases.map(([, text]) => text));
});

test("the whole amount keeps every digit", () => {
	expect(formatUsdExact(1)).toBe("USD 0.000000001");
	expect(formatUsdExact(1_500_000_000)).toBe("USD 1.50");
	expect(formatUsdExact(9_007_199_254_740_991)).toBe("USD 9,007,199.254740991");
	expect(formatUsdExact(-20)).toBe("−USD 0.00000002");
});

test("rates are shown as the catalogue has them, durations and ages in the unit that fits", () => {
	expect([formatRate("0.23"), formatRate("1000000"), formatRate("0.000001")]).toEqual([
		"$0.23",
		"$1,000,000.00",
		"$0.000001",
	]);
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

test("after signing in one stays on this site, whatever the address asks for", () => {
	for (const next of [
		null,
		"",
		"//evil.example",
		"/\\evil.example",
		"https://evil.example",
		"javascript:alert(1)",
		"keys",
	]) {
		expect(safeNext(next)).toBe("/overview");
	}
	expect(safeNext("/keys?create=1")).toBe("/keys?create=1");
});

test("paths: parameters are decoded, the rest of a path keeps its slashes", () => {
	expect(matchPath("/models/*", "/models/qwen/qwen3%2D32b")).toEqual({ rest: "qwen/qwen3-32b" });
	expect(matchPath("/keys/:id", "/keys/key_1/")).toEqual({ id: "key_1" });
	expect(matchPath("/keys/:id", "/keys")).toBeUndefined();
	expect(matchPath("/keys", "/keys/key_1")).toBeUndefined();
	expect(matchPath("/", "/")).toEqual({});
});

test("filters of the address: unknown words are left out, whole days are asked for", () => {
	const now = Date.UTC(2026, 10, 21, 13, 45);
	const filter = filterOf(new URLSearchParams("range=7d&status=nonsense&model=m"), now);
	expect(filter).toEqual({ from: Date.UTC(2026, 10, 15), to: now, bucket: "day", model: "m", key: null, status: null });
	expect(filterOf(new URLSearchParams("range=24h"), now).bucket).toBe("hour");
	expect(filterOf(new URLSearchParams("range=month"), now).from).toBe(Date.UTC(2026, 10, 1));
});

test("snippets survive quotes in what was typed", () => {
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

test("QR codes are those that a reader has read (zbar); a text that is too long gives none", () => {
	const digest = (text: string) => {
		const rows = qrModules(text)?.map((row) => row.map(Number).join("")) ?? [];
		return new Bun.CryptoHasher("sha256").update(rows.join("\n")).digest("hex").slice(0, 16);
	};
	expect([digest("HELLO"), digest("y".repeat(500))]).toEqual(["d51e6b3d78d8b096", "e81d24d83e6dbb22"]);
	expect(qrModules("z".repeat(2_000))).toBeUndefined();
});

test("ticks and cards show whole cents and at least two digits that say something", () => {
	const shown = [0, 600_000_000, 300_000_000, 15_000_000, 1_500, 1_050_000 * 1e9, 12.4e9, -50_000_000].map(
		formatUsdShort,
	);
	expect(shown).toEqual(["$0", "$0.60", "$0.30", "$0.015", "$0.0000015", "$1.05M", "$12", "−$0.05"]);
});

test("the digits behind the point of the short form are counted, so that a column can line up", () => {
	expect([0, 300, 12_345_678, 1_234_567_890_000_000].map(usdDecimals)).toEqual([2, 7, 4, 2]);
});
