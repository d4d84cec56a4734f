import { describe, expect, test } from "bun:test";
import { Fault } from "../../src/base/fault.ts";
import { createLog } from "../../src/base/log.ts";

function setUp(level: "debug" | "info" | "warn" | "error" = "debug") {
	const lines: string[] = [];
	return { lines, log: createLog({ level, write: (line) => void lines.push(line), nowMs: () => 0 }) };
}

describe("a log", () => {
	test("writes one line of JSON per event, whatever the event contains", () => {
		const { lines, log } = setUp();
		log.info("a\nb", { text: "c\r\nd\u2028", big: 10n ** 30n, none: undefined, nested: { list: [1] } });
		expect(lines).toHaveLength(1);
		expect(lines[0]).not.toMatch(/[\r\n]/);
		expect(JSON.parse(lines[0] as string)).toEqual({
			time: "1970-01-01T00:00:00.000Z",
			level: "info",
			message: "a\nb",
			text: "c\r\nd\u2028",
			big: "1000000000000000000000000000000",
			nested: { list: [1] },
		});
	});

	test("keeps its own time, level and message if fields have the same names", () => {
		const { lines, log } = setUp();
		log.with({ level: "error" }).debug("said", { time: 1, level: "error", message: "other" });
		expect(JSON.parse(lines[0] as string)).toEqual({
			time: "1970-01-01T00:00:00.000Z",
			level: "debug",
			message: "said",
		});
	});

	test.each([
		["one account", () => "acc_1", 10],
		["many accounts", (at: number) => `acc_${at}`, 100],
		["callers without an account", () => undefined, 100],
	] as const)("leaves out lines that %s can repeat, and counts them", (_, accountOf, linesMax) => {
		const lines: string[] = [];
		let nowMs = 0;
		const log = createLog({ level: "info", write: (line) => void lines.push(line), nowMs: () => nowMs });
		for (let at = 0; at < 20_000; at += 1)
			log.with({ process: "gateway-1" }).info("refused", { account: accountOf(at), detail: "x".repeat(200) });
		expect(lines).toHaveLength(linesMax);
		expect(lines.join("").length).toBeLessThan(64_000);
		nowMs += 60_000;
		log.info("refused", { account: accountOf(0) });
		expect(lines.slice(linesMax).map((line) => JSON.parse(line))).toMatchObject([
			{ level: "warn", message: "similar lines of the log were left out", of: "refused", lines: 20_000 - linesMax },
			{ message: "refused" },
		]);
	});

	test("omits events below the log level", () => {
		const { lines, log } = setUp("warn");
		log.debug("no");
		log.info("no");
		log.warn("yes");
		log.error("yes");
		expect(lines).toHaveLength(2);
	});

	test("writes bound fields and an error with its private text", () => {
		const { lines, log } = setUp();
		log
			.with({ part: "x" })
			.with({ id: 1 })
			.error("failed", { error: new Fault("overloaded", "public", { private: "hidden" }) });
		expect(JSON.parse(lines[0] as string)).toMatchObject({
			part: "x",
			id: 1,
			error: { name: "Fault", message: "public", detail: "hidden" },
		});
	});

	test("redacts secret fields at any depth, and texts that look like a key", () => {
		const { lines, log } = setUp();
		const canary = "canary-5ecret";
		const fields = {
			Authorization: canary,
			"x-api-key": canary,
			cookie: canary,
			api_key: canary,
			apiKey: canary,
			password: canary,
			secret: canary,
			pepper: canary,
			body: canary,
			prompt: canary,
			messages: [canary],
			deep: { list: [{ "set-cookie": canary }] },
		};
		log.info("x", { ...fields, text: `with sk_service_${"A".repeat(46)} in it` });
		expect(lines[0]).not.toContain(canary);
		expect(lines[0]).not.toContain("A".repeat(20));
	});

	test("never throws, and leaves out fields that JSON cannot represent", () => {
		const { lines, log } = setUp();
		const cycle: Record<string, unknown> = {};
		cycle.self = cycle;
		log.warn("odd", { cycle });
		expect(JSON.parse(lines[0] as string)).toMatchObject({ level: "warn", message: "odd" });
	});
});

describe("a log for a terminal", () => {
	function atTerminal(colour = false) {
		const lines: string[] = [];
		const log = createLog({
			level: "info",
			write: (line) => void lines.push(line),
			nowMs: () => 0,
			terminal: { colour },
		});
		return { lines, log };
	}
	const time = new Date(0).toTimeString().slice(0, 8);

	test("writes one line per event, with its fields by name", () => {
		const { lines, log } = atTerminal();
		log.info("listening", {
			url: "http://127.0.0.1:8080",
			models: 2,
			names: ["a b"],
			text: "two words",
			none: undefined,
		});
		expect(lines).toEqual([
			`${time} info  listening  url=http://127.0.0.1:8080  models=2  names=["a b"]  text="two words"`,
		]);
	});

	test("writes an error's message and position on the same line", () => {
		const { lines, log } = atTerminal();
		log.error("failed", { error: new Fault("overloaded", "public\ntext", { private: "hidden" }) });
		expect(lines).toHaveLength(1);
		expect(lines[0]).toMatch(/^\S+ error failed {2}error="public\\ntext \(hidden\)" at base\/log\.test\.ts:\d+$/);
	});

	test("writes neither control characters nor secrets", () => {
		const { lines, log } = atTerminal();
		const evil = "a\x1b[2Jb\x9bc\nd\u202ee\u2028f\x7f";
		log.warn(evil, { [evil]: evil, list: [evil], key: `sk_service_${"A".repeat(46)}`, error: new Error(evil) });
		expect(lines[0]).not.toMatch(/[\p{Cc}\u2028\u202e]/u);
		expect(lines[0]).not.toContain("A".repeat(20));
	});

	test("colours failures only, where the terminal allows it", () => {
		const { lines, log } = atTerminal(true);
		log.info("fine");
		log.warn("odd");
		expect(lines[0]).not.toContain("\x1b");
		expect(lines[1]).toContain("\x1b[33mwarn \x1b[0m odd");
	});
});
