import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import type { ReloadResult } from "../../src/catalog/catalog.ts";
import { watchCatalog } from "../../src/catalog/watch.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

let directory: string;
let path: string;
let watching: ReturnType<typeof watchCatalog> | undefined;

beforeEach(() => {
	directory = temporaryFolder();
	path = join(directory, "tollgate.yaml");
});
afterEach(() => watching?.stop());

const OK: ReloadResult = { ok: true };
const AWAY: ReloadResult = { ok: false, lasting: false, problems: [] };

/** Watches `path`. `next()` returns the text that the next reload reads. */
function watchIt(options: { pollMs: number; answer?: () => ReloadResult }) {
	const texts: string[] = [];
	const waiters: ((text: string) => void)[] = [];
	const said: (readonly unknown[])[] = [];
	const log = createLog({
		level: "warn",
		write: (line) => {
			const { message, reason } = JSON.parse(line);
			said.push([message, reason]);
		},
	});
	let reloads = 0;
	const reload = async () => {
		reloads++;
		const text = await readFile(path, "utf8");
		const waiter = waiters.shift();
		if (waiter === undefined) texts.push(text);
		else waiter(text);
		return options.answer?.() ?? OK;
	};
	watching = watchCatalog({ clock: systemClock, log, reload }, { path, pollMs: options.pollMs });
	const next = async () => texts.shift() ?? (await new Promise<string>((resolve) => waiters.push(resolve)));
	return { next, said, reloads: () => reloads };
}

describe("the watch of the catalogue file notices a change made by", () => {
	test.each<[string, (text: string) => void]>([
		["a write in place", (text) => writeFileSync(path, text)],
		[
			"an atomic rename over the file",
			(text) => {
				writeFileSync(join(directory, "new"), text);
				renameSync(join(directory, "new"), path);
			},
		],
		[
			"removing the file and creating it again",
			(text) => {
				rmSync(path);
				writeFileSync(path, text);
			},
		],
	])("%s", async (_, change) => {
		writeFileSync(path, "one");
		const { next } = watchIt({ pollMs: 10 });
		expect(await next()).toBe("one");
		for (const text of ["two", "three"]) {
			change(text);
			expect(await next()).toBe(text);
		}
	});

	test("switching a symbolic link", async () => {
		for (const version of ["v1", "v2"]) {
			mkdirSync(join(directory, version));
			writeFileSync(join(directory, version, "tollgate.yaml"), version);
		}
		symlinkSync("v1", join(directory, "..data"));
		symlinkSync(join("..data", "tollgate.yaml"), path);
		const { next } = watchIt({ pollMs: 10 });
		expect(await next()).toBe("v1");
		symlinkSync("v2", join(directory, "..data_tmp"));
		renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
		expect(await next()).toBe("v2");
	});
});

test("the watch of the catalogue file repeats a reload that failed temporarily", async () => {
	writeFileSync(path, "one");
	const answers = [AWAY, AWAY, { ok: false, lasting: true, problems: [] } as const];
	const { next, reloads } = watchIt({ pollMs: 20, answer: () => answers.shift() ?? OK });
	await next();
	await next();
	await next();
	// If this change is the first that is reloaded, the earlier polls did not reload the old text.
	const seen = next();
	await new Promise((resolve) => systemClock.after(100, () => resolve(undefined)));
	expect(reloads()).toBe(3);
	writeFileSync(path, "two");
	expect(await seen).toBe("two");
});

test("the watch of the catalogue file waits until the file is completely written", async () => {
	writeFileSync(path, "one");
	const { next } = watchIt({ pollMs: 60 });
	expect(await next()).toBe("one");
	let text = "";
	for (let part = 0; part < 30; part++) {
		text += `part ${part}\n`;
		writeFileSync(path, text);
		await Bun.sleep(5);
	}
	expect(await next()).toBe(text);
});

test("the watch reports an unreadable catalogue file and reads it once it is readable", async () => {
	writeFileSync(path, "one");
	const { next, said } = watchIt({ pollMs: 5 });
	await next();
	rmSync(path);
	await waitFor(() => said.length === 1, "the warning of a missing file");
	writeFileSync(path, "two");
	expect(await next()).toBe("two");
	// A symbolic link to itself through another, which cannot be read as a file, even by root.
	const other = join(directory, "other");
	symlinkSync(path, other);
	renameSync(other, path);
	await waitFor(() => said.length === 2, "a word of one that cannot be looked at");
	writeFileSync(other, "three");
	renameSync(other, path);
	expect(await next()).toBe("three");
	expect(said).toEqual([
		["the catalogue file is missing", undefined],
		["the catalogue file cannot be read; retrying", "ELOOP"],
	]);
});

test("the watch of the catalogue file reads nothing more after its `stop`", async () => {
	writeFileSync(path, "one");
	const { next, reloads } = watchIt({ pollMs: 5 });
	await next();
	watching?.stop();
	writeFileSync(path, "two");
	await Bun.sleep(60);
	expect(reloads()).toBe(1);
});
