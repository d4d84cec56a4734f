import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { assert } from "../../src/base/assert.ts";
import { sleep, withDeadline } from "../../src/base/clock.ts";
import { createEnvironmentReader } from "../../src/base/environment-reader.ts";
import { Fault } from "../../src/base/fault.ts";
import { tryFileLock } from "../../src/base/file-lock.ts";
import { newId, newUuid, uuidFromId } from "../../src/base/id.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { createManualClock } from "../support/upstream-clock.ts";

describe("a promise with a deadline", () => {
	const late = () => new Error("late");

	test("rejects at the deadline, and leaves no timer if it settles earlier", async () => {
		const clock = createManualClock();
		const slow = withDeadline(clock, new Promise<never>(() => {}), 100, late);
		clock.advance(100);
		await expect(slow).rejects.toThrow("late");
		expect(await withDeadline(clock, Promise.resolve(5), 100, late)).toBe(5);
		await expect(withDeadline(clock, Promise.reject(new Error("own")), 100, late)).rejects.toThrow("own");
		expect(clock.pending()).toBe(0);
	});

	test("a sleep never ends early", async () => {
		const clock = createManualClock();
		let awake = false;
		const slept = sleep(clock, 100).then(() => {
			awake = true;
		});
		clock.advance(99);
		await Promise.resolve();
		expect(awake).toBe(false);
		clock.advance(1);
		await slept;
		expect(awake).toBe(true);
	});
});

describe("an id", () => {
	test("has its prefix, sorts by creation time and is unique", () => {
		const ids = Array.from({ length: 10_000 }, () => newId("key"));
		expect(new Set(ids).size).toBe(ids.length);
		expect([...ids].sort()).toEqual(ids);
		expect(ids.every((id) => /^key_[0-9a-f]{32}$/.test(id))).toBe(true);
	});

	test("yields its UUID from each public form, and undefined from any other text", () => {
		const uuid = newUuid();
		const hex = uuid.replaceAll("-", "");
		for (const form of [uuid, hex, `req_${hex}`, `chatcmpl-${hex}`, uuid.toUpperCase()])
			expect(uuidFromId(form)).toBe(uuid);
		for (const form of ["", "req_", "chatcmpl-xyz", hex.slice(1), `${hex}z`]) expect(uuidFromId(form)).toBeUndefined();
	});
});

describe("a file lock", () => {
	test("has one holder at a time, and ignores a second release by the same holder", () => {
		const path = join(temporaryFolder(), "lock");
		const first = tryFileLock(path);
		expect(first).toBeDefined();
		expect(tryFileLock(path)).toBeUndefined();
		first?.release();
		const second = tryFileLock(path);
		expect(second).toBeDefined();
		first?.release();
		expect(tryFileLock(path)).toBeUndefined();
		second?.release();
	});

	test("is freed by the kernel when its holder is killed", async () => {
		const path = join(temporaryFolder(), "lock");
		const module = join(import.meta.dir, "../../src/base/file-lock.ts");
		const holder = Bun.spawn(
			[
				process.execPath,
				"-e",
				`import { tryFileLock } from ${JSON.stringify(module)}; tryFileLock(${JSON.stringify(path)}); console.log("held"); setInterval(() => {}, 1000);`,
			],
			{ stdout: "pipe" },
		);
		const reader = holder.stdout.getReader();
		await reader.read();
		expect(tryFileLock(path)).toBeUndefined();
		holder.kill("SIGKILL");
		await holder.exited;
		const lock = tryFileLock(path);
		expect(lock).toBeDefined();
		lock?.release();
	});

	// A gateway tries the locks of other journals every few seconds as long as it runs, so a leak would add up.
	test("allocates no memory while it retries to get the lock", async () => {
		const folder = temporaryFolder();
		const module = join(import.meta.dir, "../../src/base/file-lock.ts");
		const tries = `
			import { tryFileLock } from ${JSON.stringify(module)};
			const held = tryFileLock(${JSON.stringify(join(folder, "lock"))});
			const before = process.memoryUsage.rss();
			for (let i = 0; i < 20_000; i++) if (tryFileLock(${JSON.stringify(join(folder, "lock"))})) throw new Error("free");
			console.log([process.memoryUsage.rss() - before, held !== undefined].join(" "));`;
		const child = Bun.spawn([process.execPath, "-e", tries], { stdout: "pipe" });
		const [grown, held] = (await new Response(child.stdout).text()).trim().split(" ");
		expect(held).toBe("true");
		// When each try opened the C library, this loop took 50 MB.
		expect(Number(grown)).toBeLessThan(20_000_000);
	});
});

describe("the environment reader", () => {
	function read(env: Record<string, string>) {
		const problems: string[] = [];
		return { reader: createEnvironmentReader(env, (problem) => problems.push(problem)), problems };
	}

	test("reads an empty variable as unset", () => {
		const { reader } = read({ A: "", B: " " });
		expect([reader.text("A"), reader.isSet("A"), reader.isSet("A", "B"), reader.list("A")]).toEqual([
			null,
			false,
			true,
			[],
		]);
	});

	test("reports an invalid value and returns the default instead", () => {
		const { reader, problems } = read({ PORT: "80a", BIG: "70000", MODE: "x", URL: "ftp://user:canary@x" });
		expect([
			reader.integer("PORT", 1, 0, 65_535),
			reader.integer("BIG", 2, 0, 65_535),
			reader.choice("MODE", ["a", "b"]),
			reader.url("URL", ["http:"]),
		]).toEqual([1, 2, "a", null]);
		expect(problems).toHaveLength(4);
		expect(problems.join()).not.toContain("canary");
	});
});

test("a fault's text contains only the public message", () => {
	const fault = new Fault("overloaded", "Busy.", { private: "canary", cause: new Error("canary") });
	expect(String(fault)).toBe("Fault: Busy.");
	expect(fault.param).toBeNull();
});

test("a failed assertion throws", () => {
	expect(() => assert(false, "why")).toThrow("why");
	expect(() => assert(true, "why")).not.toThrow();
});
