import { describe, expect, spyOn, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { DEFAULT_LIMITS } from "../../../src/catalog/service-limits.ts";
import { createBodyMemory } from "../../../src/gateway/body/body-memory.ts";
import { createBodyReads } from "../../../src/gateway/body/body-reads.ts";
import { readBytes, readForm, UNLIMITED_BYTES } from "../../../src/gateway/body/bytes-body.ts";
import { readJson } from "../../../src/gateway/body/json-body.ts";
import { BODY_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S } from "../../../src/gateway/connection.ts";
import { localServer } from "../../support/at-end.ts";
import { codeOf } from "../../support/code-of.ts";
import { openRaw } from "../../support/raw-http.ts";
import { spyOnSlowClock } from "../../support/slow-clock.ts";
import { createManualClock } from "../../support/upstream-clock.ts";
import { waitFor } from "../../support/wait.ts";

const URL = "http://test.example/";
const systemReads = createBodyReads(systemClock);

const timeouts: number[] = [];
const from = (request: Request): Connection => ({
	request,
	address: "",
	setIdleTimeout: (seconds) => void timeouts.push(seconds),
});
const post = (body: BodyInit, headers: Record<string, string> = {}) =>
	from(new Request(URL, { method: "POST", body, headers }));

describe("a request body", () => {
	test("is read up to the size limit, and beyond it is refused with that limit", async () => {
		for (const [bytesMax, limit] of [
			[2, "2 bytes"],
			[1_000, "1000 bytes"],
			[64 * 1024, "64 KB"],
			[1024 * 1024 - 1, "1048575 bytes"],
			[1024 * 1024, "1 MB"],
			[1536 * 1024, "1536 KB"],
			[16 * 1024 * 1024, "16 MB"],
		] as const) {
			const inPieces = (bytes: number) => new Blob(["x".repeat(bytes)]).stream();
			const told = (bytes: number) => ({ "content-length": String(bytes) });
			expect(await codeOf(readBytes(post("x".repeat(bytesMax), told(bytesMax)), bytesMax, systemReads))).toBe("none");
			expect(await codeOf(readBytes(post(inPieces(bytesMax)), bytesMax, systemReads))).toBe("none");
			for (const large of [post("x", told(bytesMax + 1)), post(inPieces(bytesMax + 1))])
				await expect(readBytes(large, bytesMax, systemReads)).rejects.toMatchObject({
					...{ code: "payload_too_large", message: `The body is larger than ${limit}.` },
				});
		}
	});

	test.each([
		[100, 20_000],
		[2_048, 200_000],
	])("counts the memory of %d objects with numeric names", async (count, chars) => {
		const memory = createBodyMemory({ limits: () => DEFAULT_LIMITS });
		const hold = memory.hold("acc");
		const text = JSON.stringify({ x: Array.from({ length: count }, () => ({ 999: 1 })), y: "y".repeat(chars) });
		await readJson(post(text, { "content-length": String(text.length) }), 1_000_000, systemReads, hold);
		expect(memory.bytes()).toBeWithin(text.length + count * 8_192, text.length + count * 8_400);
		hold.release();
		expect(memory.bytes()).toBe(0);
	});

	test("times out if its bytes take longer than a minute to arrive", async () => {
		const clock = createManualClock();
		const reads = createBodyReads(clock);
		let feed: ReadableStreamDefaultController<Uint8Array> | undefined;
		const body = new ReadableStream<Uint8Array>({
			start(controller) {
				feed = controller;
			},
		});
		const reading = codeOf(readJson(post(body), 1_000, reads));
		for (let second = 0; second < 60; second++) {
			feed?.enqueue(new TextEncoder().encode(" "));
			await Promise.resolve();
			clock.advance(1_000);
		}
		expect(await reading).toBe("request_timeout");
		expect((await readJson(post('{"a":1}'), 1_000, reads)).value).toEqual({ a: 1 });
		// The timer that polls for body memory stops at its next interval if no body waits.
		clock.advance(100);
		expect(clock.pending()).toBe(0);
	});

	test("decodes to the same text wherever its chunks are split", async () => {
		const MB = 1024 * 1024;
		const texts = ["中", "😀", "é", "\ufeff", "a"].map((sign) => sign.repeat(MB / 2));
		for (const [shift, text] of texts.flatMap((all) =>
			["", "x", "xy", "xyz"].map((before) => [before, all] as const),
		)) {
			const plain = new TextEncoder().encode(`\ufeff{"a":"${shift}${text}"}`);
			const broken = plain.slice();
			for (let at = 1_000; at < broken.length - 4; at += 65_521) broken[at] = 0xb8;
			for (const bytes of [plain, broken]) {
				const expected = (JSON.parse(new TextDecoder().decode(bytes)) as { a: string }).a;
				const isSame = async (sent: Connection, read?: typeof bytes) =>
					(await readJson(sent, 8 * MB, systemReads, undefined, read)).value.a === expected;
				expect(await isSame(post(bytes, { "content-length": String(bytes.length) }))).toBeTrue();
				expect(await isSame(post(bytes), bytes)).toBeTrue();
				// The first piece ends within the byte order mark.
				const ends = Array.from({ length: Math.ceil(bytes.length / 99_991) }, (_, at) => 2 + at * 99_991);
				const pieces = [0, ...ends].map((begin, at) => bytes.subarray(begin, ends[at]));
				const inPieces = new ReadableStream({
					start(sent) {
						for (const piece of pieces) sent.enqueue(piece);
						sent.close();
					},
				});
				expect(await isSame(post(inPieces))).toBeTrue();
			}
		}
	});

	test.each([
		["JSON", 60, readJson, "application/json"],
		["of any kind", 600, readBytes, "audio/wav"],
		["a form", 600, readForm, "multipart/form-data; boundary=b"],
	] as const)("that is read as %s times out after %d seconds", async (_, seconds, read, type) => {
		const clock = createManualClock();
		const reads = createBodyReads(clock);
		const asked = Promise.withResolvers<void>();
		const body = new ReadableStream<Uint8Array>({ pull: () => asked.resolve() }, { highWaterMark: 0 });
		const connection = post(body, { "content-type": type });
		const reading = codeOf(read(connection, 1_000, reads));
		await asked.promise;
		clock.advance(seconds * 1_000 - 1);
		expect(connection.request.body?.locked).toBe(true);
		clock.advance(1);
		expect(await reading).toBe("request_timeout");
		expect([connection.request.body?.locked, clock.pending()]).toEqual([false, 0]);
	});

	test("is parsed in steps, between which other tasks run", async () => {
		const text = `{"messages":[{"role":"user","content":"${"a line of prose ".repeat(20_000)}"}]}`;
		const done: string[] = [];
		const { parse } = JSON;
		const { byteLength } = Buffer;
		const spies = [
			spyOnSlowClock(),
			spyOn(globalThis, "setImmediate").mockImplementation(((turn: () => void) => {
				if (done.at(-1) !== "turn") done.push("turn");
				queueMicrotask(turn);
			}) as typeof setImmediate),
			spyOn(Buffer, "byteLength").mockImplementation((string) => {
				if (done.at(-1) !== "looked at") done.push("looked at");
				return byteLength(string);
			}),
			spyOn(JSON, "parse").mockImplementation((json) => {
				if (json.startsWith("{")) done.push("parsed");
				return parse(json);
			}),
		];
		try {
			const whole = post(text, { "content-length": String(text.length) });
			await readJson(whole, text.length, systemReads, undefined, undefined, { field: "messages" });
		} finally {
			for (const spy of spies) spy.mockRestore();
		}
		expect(done).toEqual(["turn", "looked at", "turn", "parsed", "turn"]);
	});

	test.each([
		["in one step", 1_000, "[]", 64],
		["in steps", 100_000, "[]", 64],
		["in steps", 2_048, JSON.stringify(Array(200).fill(1_000)), 3_264],
	] as const)("that is parsed %s counts the memory of %d arrays", async (_, count, array, bytes) => {
		const memory = createBodyMemory({ limits: () => DEFAULT_LIMITS });
		const hold = memory.hold("acc");
		const text = `{"input":[${Array(count).fill(array).join()}],"text":"${"x".repeat(20_000)}"}`;
		await readJson(post(text, { "content-length": String(text.length) }), 8_000_000, systemReads, hold);
		expect(memory.bytes()).toBeWithin(text.length + count * bytes - 16_384, text.length + count * (bytes + 20));
		hold.release();
		expect(memory.bytes()).toBe(0);
	});

	test("keeps its connection open until the body's deadline", async () => {
		const clock = createManualClock();
		const reads = createBodyReads(clock);
		for (const end of ["comes", "breaks off", "is late"]) {
			let feed: ReadableStreamDefaultController<Uint8Array> | undefined;
			const body = new ReadableStream<Uint8Array>({
				start(controller) {
					feed = controller;
				},
			});
			timeouts.length = 0;
			const reading = codeOf(readJson(post(body), 1_000, reads));
			expect(timeouts).toEqual([]);
			clock.advance(100);
			expect(timeouts).toEqual([BODY_TIMEOUT_S]);
			if (end === "breaks off") feed?.error(new Error("gone"));
			else feed?.enqueue(new TextEncoder().encode("{}"));
			if (end === "comes") feed?.close();
			if (end === "is late") clock.advance(60_000);
			expect(await reading).toBe(end === "comes" ? "none" : "request_timeout");
			expect(timeouts.slice(0, 2)).toEqual([BODY_TIMEOUT_S, IDLE_TIMEOUT_S]);
		}
		timeouts.length = 0;
		await readJson(post("{}"), 1_000, reads);
		clock.advance(1_000);
		expect(timeouts).toEqual([]);
	});

	test("uses no memory for bytes that arrive after the body's deadline", async () => {
		const clock = createManualClock();
		const memory = createBodyMemory({ limits: () => DEFAULT_LIMITS });
		const hold = memory.hold("account");
		const text = JSON.stringify({ x: "x".repeat(60_000) });
		const { promise, resolve } = Promise.withResolvers<string>();
		const connection = post(text, { "content-length": String(text.length) });
		spyOn(connection.request, "text").mockReturnValue(promise);
		const reading = codeOf(readJson(connection, text.length, createBodyReads(clock), hold));
		clock.advance(100);
		clock.advance(60_000);
		expect(await reading).toBe("request_timeout");
		hold.release();
		resolve(text);
		await promise;
		expect(memory.bytes()).toBe(0);
	});

	test("that takes long loses its slot to an account with fewer slow bodies", async () => {
		const clock = createManualClock();
		const reads = createBodyReads(clock);
		const begin = (owner: string, count: number) => {
			const takes = { ...UNLIMITED_BYTES, owner };
			const codes = Array.from({ length: count }, () =>
				codeOf(readJson(post(new ReadableStream()), 1_000, reads, takes)),
			);
			clock.advance(100);
			return codes;
		};
		const codes = [...begin("a", 2_049), ...begin("b", 2_049), ...begin("c", 2)];
		expect([reads.slow.of("a") + reads.slow.of("b"), reads.slow.of("c")]).toEqual([4_094, 2]);
		clock.advance(60_000);
		const ends = Object.entries(Object.groupBy(await Promise.all(codes), (code) => code));
		expect(ends.map(([code, of]) => [code, of?.length])).toEqual([
			["overloaded", 2],
			["request_timeout", 4_096],
			["rate_limit_exceeded", 2],
		]);
		expect(reads.slow.all()).toBe(0);
	});

	test("without a length header is refused at the size limit", async () => {
		let pulled = 0;
		const body = new ReadableStream<Uint8Array>({
			pull(controller) {
				pulled += 1;
				controller.enqueue(new Uint8Array(1_000));
			},
		});
		expect(await codeOf(readJson(post(body), 10_000, systemReads))).toBe("payload_too_large");
		expect(pulled).toBeLessThan(20);
	});

	test("with a repeated length header counts its length once", async () => {
		const twice = (bytes: number) => ({ "content-length": `${bytes}, ${bytes}` });
		const lengths: (string | null)[] = [];
		const server = localServer((request) => {
			lengths.push(request.headers.get("content-length"));
			return new Response(null);
		});
		const both = "content-length: 2\r\ncontent-length: 2\r\nconnection: close";
		const client = await openRaw(server.url.href, `POST / HTTP/1.1\r\nhost: test.example\r\n${both}\r\n\r\n{}`);
		await client.ended();
		expect(lengths).toEqual([twice(2)["content-length"]]);
		expect(await codeOf(readJson(post("{}", twice(1_001)), 1_000, systemReads))).toBe("payload_too_large");
		const memory = createBodyMemory({ limits: () => DEFAULT_LIMITS });
		const hold = memory.hold("acc");
		const text = JSON.stringify({ a: "a".repeat(100_000) });
		expect(await codeOf(readJson(post(text, twice(text.length)), 1e6, systemReads, hold))).toBe("none");
		expect(memory.bytes()).toBe(text.length);
		hold.release();
		expect(memory.bytes()).toBe(0);
	});

	test("of 16 to 256 KB counts its full length, and yields to an account that uses less", async () => {
		const memory = createBodyMemory({
			limits: () => ({ bodyMemoryBytesMax: 500_000, bodyMemoryAccountBytesMax: 450_000 }),
		});
		const clock = createManualClock();
		const reads = createBodyReads(clock);
		const upload = (account: string) => {
			const pipe = new TransformStream<Uint8Array, Uint8Array>();
			const headers = { "content-length": "200000" };
			return codeOf(readJson(post(pipe.readable, headers), 900_000, reads, memory.hold(account)));
		};
		const ended = [upload("a"), upload("a")];
		expect(memory.bytes()).toBe(400_000);
		clock.advance(100);
		void upload("b");
		expect(await Promise.race(ended)).toBe("overloaded");
		expect(memory.bytes()).toBe(400_000);
	});

	test("is read although its account's share of memory became smaller in the meantime", async () => {
		const memory = createBodyMemory({
			limits: () => ({ bodyMemoryBytesMax: 500_000, bodyMemoryAccountBytesMax: 250_000 }),
		});
		const pipe = new TransformStream<Uint8Array, Uint8Array>();
		const slow = post(pipe.readable, { "content-length": "250000" });
		const reading = codeOf(readJson(slow, 900_000, systemReads, memory.hold("a")));
		await waitFor(() => memory.bytes() === 250_000, "the body to be counted");
		memory.hold("b").take(100_000);
		await new Blob([`{"a":"${"a".repeat(249_992)}"}`]).stream().pipeTo(pipe.writable);
		expect(await reading).toBe("none");
	});

	test("of which no byte has arrived counts its declared length, at most 1 MB if it is read in pieces", async () => {
		const clock = createManualClock();
		const [reads, memory] = [createBodyReads(clock), createBodyMemory({ limits: () => DEFAULT_LIMITS })];
		const codes = Array.from({ length: 30 }, () => {
			const { readable } = new TransformStream<Uint8Array, Uint8Array>();
			const connection = post(readable, { "content-length": "3000000" });
			return codeOf(readJson(connection, 1e7, reads, memory.hold("account")));
		});
		expect([reads.whole.all(), memory.bytes()]).toEqual([12_000_000, 12_000_000 + 26 * 1_048_576]);
		clock.advance(60_000);
		expect(new Set(await Promise.all(codes))).toEqual(new Set(["request_timeout"]));
		expect(reads.whole.all()).toBe(0);
	});

	test("read in pieces counts 1 MB more than has arrived, and yields to an account that uses less", async () => {
		const memory = createBodyMemory({
			limits: () => ({ bodyMemoryBytesMax: 3_200_000, bodyMemoryAccountBytesMax: 2_800_000 }),
		});
		const upload = (account: string) => {
			const pipe = new TransformStream<Uint8Array, Uint8Array>();
			const writer = pipe.writable.getWriter();
			writer.closed.catch(() => {});
			const hold = memory.hold(account);
			const reading = codeOf(readJson(post(pipe.readable, { "content-length": "5000000" }), 5e6, systemReads, hold));
			const text = new TextEncoder().encode(`{"a":"${"a".repeat(299_990)}"}`);
			return { hold, reading, write: () => writer.write(text), end: () => writer.close() };
		};
		const [fast, slow] = [upload("a"), upload("a")];
		expect(memory.bytes()).toBe(2 * 1_048_576);
		await fast.write();
		await slow.write();
		await waitFor(() => memory.bytes() > 590_000 + 2 * 1_048_576, "both bodies to be counted");
		// Makes `slow` the slowest body, because the gateway ends the slowest body first if memory is short.
		spyOn(slow.hold, "pace").mockReturnValue(0);
		const other = upload("b");
		expect(await slow.reading).toBe("overloaded");
		// The rest is dropped instead of kept in memory.
		await expect(slow.write()).rejects.toBeUndefined();
		await other.write();
		await other.end();
		await fast.end();
		expect([await other.reading, await fast.reading]).toEqual(["none", "none"]);
		fast.hold.release();
		other.hold.release();
		expect(memory.bytes()).toBe(0);
	});

	test("that is no JSON object is refused", async () => {
		for (const text of ["", " ", "{", '{"a":}', "null", "1", '"x"', "[]", "[{}]", "undefined", "{}{}", "\u0000"])
			expect(await codeOf(readJson(post(text), 1_000, systemReads))).toBe("invalid_request");
	});

	test("whose JSON is nested deeper than 128 levels is refused", async () => {
		const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
		expect(await codeOf(readJson(post(nested(128)), 1e6, systemReads))).toBe("none");
		expect(await codeOf(readJson(post(nested(129)), 1e6, systemReads))).toBe("invalid_request");
		expect(await codeOf(readJson(post(nested(100_000)), 1e6, systemReads))).toBe("invalid_request");
		const objects = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
		expect(await codeOf(readJson(post(objects), 1e6, systemReads))).toBe("invalid_request");
	});

	test("is accepted with every content type of JSON, and without any", async () => {
		for (const type of ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"])
			expect(await codeOf(readJson(post("{}", { "content-type": type }), 1_000, systemReads))).toBe("none");
		for (const type of [
			"text/plain",
			"application/x-www-form-urlencoded",
			"multipart/form-data; boundary=x",
			"application/jsonx",
			"json",
			"x/application/json",
		])
			expect(await codeOf(readJson(post("{}", { "content-type": type }), 1_000, systemReads))).toBe(
				"unsupported_media_type",
			);
	});
});
