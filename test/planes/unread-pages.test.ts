import { expect, test } from "bun:test";
import { forwardBody } from "../../src/base/passed-body.ts";
import { createConsoleRequestLimit } from "../../src/planes/console-request-limit.ts";

const MB = 1024 * 1024;

test("unread answers of the network that has most end when other networks need the memory", () => {
	const { answer } = createConsoleRequestLimit();
	const ended: number[] = [];
	const full = { address: "192.0.2.1" };
	for (let nth = 0; nth < 256; nth++) answer(full, MB, () => void ended.push(nth));
	expect(() => answer(full, MB, () => {})).toThrow("Too many pages are open");
	const free = answer({ address: "198.51.100.1" }, 2 * MB, () => {});
	expect(ended).toEqual([0, 1]);
	free();
	expect(() => answer(full, 3 * MB, () => {})).toThrow("Too many pages are open");
	answer(full, 2 * MB, () => {});
});

test("a long chunk is forwarded in pieces, and ends when at most one is unread", async () => {
	let isOver = false;
	const body = new Response(new Uint8Array(MB)).body as ReadableStream<Uint8Array>;
	const reader = forwardBody(body, () => (isOver = true)).getReader();
	let left = MB;
	for (let at = await reader.read(); !at.done; at = await reader.read()) {
		left -= at.value.length;
		expect(at.value.length).toBeLessThanOrEqual(64 * 1024);
		if (left > 64 * 1024) expect(isOver).toBe(false);
	}
	expect([left, isOver]).toEqual([0, true]);
});
