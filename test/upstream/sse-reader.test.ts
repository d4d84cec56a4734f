import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { SseReader } from "../../src/upstream/call/sse-reader.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

function readWhole(bytes: Uint8Array): string[] {
	const reader = new SseReader();
	return [...reader.push(bytes), ...reader.end()];
}

function readCut(bytes: Uint8Array, cuts: readonly number[]): string[] {
	const reader = new SseReader();
	const events: string[] = [];
	let from = 0;
	for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
		events.push(...reader.push(bytes.slice(from, cut)));
		from = cut;
	}
	return [...events, ...reader.end()];
}

const payload = fc.oneof(
	fc.string({ unit: "grapheme" }).map((text) => JSON.stringify({ text })),
	fc.constant("[DONE]"),
	fc.constant("äöü 漢字 🎉 \u2028"),
);
const noise = fc.constantFrom(
	": ping",
	"event: message",
	"id: 7",
	"retry: 3000",
	"dataX: no",
	"da",
	":",
	"data",
	"data:",
);
const breakMark = fc.constantFrom("\n", "\r\n", "\r");

describe("the SSE reader", () => {
	test("returns the same events wherever the bytes are split", () => {
		const line = fc.oneof({ weight: 3, arbitrary: payload.map((text) => `data: ${text}`) }, noise, fc.constant(""));
		const stream = fc
			.array(fc.tuple(line, breakMark), { maxLength: 30 })
			.map((lines) => bytesOf(lines.flat().join("")));
		fc.assert(
			fc.property(stream, fc.array(fc.nat(2000), { maxLength: 40 }), (bytes, cuts) => {
				expect(readCut(bytes, cuts)).toEqual(readWhole(bytes));
			}),
			{ numRuns: 500 },
		);
	});

	test("reads every kind of line break even if bytes arrive one by one", () => {
		fc.assert(
			fc.property(fc.array(payload, { minLength: 1, maxLength: 8 }), breakMark, (payloads, end) => {
				const bytes = bytesOf(payloads.map((text) => `data: ${text}${end}${end}`).join(""));
				const reader = new SseReader();
				const events: string[] = [];
				for (const byte of bytes) events.push(...reader.push(Uint8Array.of(byte)));
				expect([...events, ...reader.end()]).toEqual(payloads);
			}),
			{ numRuns: 200 },
		);
	});

	test("joins data lines, and drops comments and other fields", () => {
		const text = "\uFEFFevent: x\ndata: a\n: c\ndata:b\ndata:  c\n\n: only\n\nretry: 1\n\ndata\n\ndatum: no\n\n";
		expect(readWhole(bytesOf(text))).toEqual(["a\nb\n c", ""]);
		expect(readWhole(bytesOf('error: {"code":4}\r\n\r\nerro\n\nerrors: no\n\n'))).toEqual(['{"error": {"code":4}}']);
	});

	test("returns a last event whose blank line is missing", () => {
		expect(readWhole(bytesOf("data: [DONE]"))).toEqual(["[DONE]"]);
		expect(readWhole(bytesOf("data: a\n\ndata: b\n"))).toEqual(["a", "b"]);
	});

	test("fails on a line or event above the size limit", () => {
		const limit = { eventBytesMax: 1000 };
		const failed = { name: "UpstreamFailure", kind: "failed" };
		const attempt = (feed: (push: (text: string) => void) => void) => {
			const reader = new SseReader(limit.eventBytesMax);
			try {
				feed((text) => void reader.push(bytesOf(text)));
			} catch (error) {
				return error;
			}
			return undefined;
		};
		expect(attempt((push) => push(`data: ${"x".repeat(990)}\n\n`))).toBeUndefined();
		expect(attempt((push) => push(`data: ${"x".repeat(1001)}\n\n`))).toMatchObject(failed);
		expect(attempt((push) => push("x".repeat(1001)))).toMatchObject(failed);
		expect(attempt((push) => [..."x".repeat(1001)].forEach(push))).toMatchObject(failed);
		const manyLines = attempt((push) => {
			for (let line = 0; line < 20; line += 1) push(`data: ${"x".repeat(90)}\n`);
		});
		expect(manyLines).toMatchObject(failed);
	});

	test("reads a megabyte line byte by byte in linear time", () => {
		const bytes = bytesOf(`data: ${"x".repeat(1024 * 1024 - 100)}\n\n`);
		const reader = new SseReader();
		const started = performance.now();
		let events = 0;
		for (let at = 0; at < bytes.length; at += 1) events += reader.push(bytes.subarray(at, at + 1)).length;
		expect(events).toBe(1);
		expect(performance.now() - started).toBeLessThan(10_000);
	});
});
