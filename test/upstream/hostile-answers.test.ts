/** For any answer of a server, the call ends within its deadline, with bounded memory and event-loop time. */
import { afterEach, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { brotliCompressSync, constants, deflateRawSync } from "node:zlib";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { atEnd } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import {
	askChat,
	chatCall,
	collect,
	limitsWith,
	modelOver,
	openChat,
	snapshotOf,
} from "../support/upstream-catalog.ts";
import { UPSTREAM_SPEC } from "../support/upstream-set.ts";

const MB = 1024 * 1024;
/** Growth of memory that shows that an answer was buffered without a limit. */
const GROWTH_BYTES_MAX = (LONG ? 300 : 200) * MB;
const FLOOD_BYTES = (LONG ? 400 : 250) * MB;
/** Limit of one turn of the event loop on a busy machine. Without limits on answers a turn took seconds. */
const HELD_MS_MAX = 1_500;

type Play = (socket: Socket) => Promise<void> | void;
let play: Play = () => {};
const sockets = new Set<Socket>();
const server = createServer((socket) => {
	sockets.add(socket);
	socket.setMaxListeners(0);
	socket.on("error", () => {});
	socket.on("close", () => sockets.delete(socket));
	socket.once("data", (bytes) => {
		if (bytes.toString("latin1").startsWith("POST")) void play(socket);
		else socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
	});
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
atEnd(() => void server.close());
afterEach(() => {
	for (const socket of sockets) socket.destroy();
});
const { port } = server.address() as { port: number };

const others = { breakerFailuresInRow: 10_000, breakerFailureShare: 1, healthIntervalMs: 3_600_000 };
const endsAfter = (ms: number) => limitsWith({ ...others, firstEventMs: ms, silenceMs: ms / 2, totalMs: 1.5 * ms });
/** Short deadlines for answers that never end, which the gateway reads at full speed until the deadline. */
const HASTY = endsAfter(LONG ? 1_000 : 150);
const BY_TIME = /more to follow|extension|trailers|comments|fields|never comes/;
const USUAL = endsAfter(1_000);
const AT_LEISURE = endsAfter(20_000);
let limits = USUAL;
const upstreams = createUpstreams({ clock: systemClock, log: silentLog }, { limits: () => limits });
atEnd(() => upstreams.stop());
const model = modelOver([{ ...UPSTREAM_SPEC, url: `http://127.0.0.1:${port}/v1`, keepAlive: false }]);
upstreams.sync(snapshotOf(model));

const head = (...lines: string[]) => `HTTP/1.1 200 OK\r\n${lines.join("\r\n")}\r\n\r\n`;
const JSON_TYPE = "content-type: application/json";
const SSE_TYPE = "content-type: text/event-stream";
const CHUNKED = "transfer-encoding: chunked";

/** Sends `begin`, then repeats `piece` as fast as the gateway reads. */
function flood(begin: string, piece: string): Play {
	const bytes = Buffer.from(piece.repeat(Math.ceil((256 * 1024) / piece.length)));
	return async (socket) => {
		socket.write(begin);
		for (let sent = 0; sent < FLOOD_BYTES && !socket.destroyed; sent += bytes.length)
			if (!socket.write(bytes))
				await new Promise<void>((resolve) => {
					socket.once("drain", resolve);
					socket.once("close", () => resolve());
				});
		socket.end();
	};
}

const chunked = (begin: string, piece: string) => {
	const data = piece.repeat(Math.ceil(65_536 / piece.length));
	return flood(begin, `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`);
};
const once =
	(...parts: (string | Uint8Array)[]): Play =>
	(socket) => {
		for (const part of parts) socket.write(part);
		socket.end();
	};
function packed(encoding: string, body: Uint8Array, type: string): Play {
	return once(head(type, `content-encoding: ${encoding}`, `content-length: ${body.length}`), body);
}

const ZEROS = Buffer.alloc(2 * MB);
/** Compressed blocks that are independent, so that they can be repeated without an end. */
const deflated = Buffer.concat(
	Array(FLOOD_BYTES / ZEROS.length).fill(deflateRawSync(ZEROS, { finishFlush: constants.Z_FULL_FLUSH })),
);
const zstd = Bun.zstdCompressSync(ZEROS);
const BOMBS: Readonly<Record<string, Uint8Array>> = {
	gzip: Buffer.concat([Bun.gzipSync("").subarray(0, 10), deflated]),
	deflate: deflated,
	zstd: Buffer.concat(Array(FLOOD_BYTES / ZEROS.length).fill(zstd)),
	br: brotliCompressSync(Buffer.alloc(64 * MB), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
};
const good = Buffer.from(JSON.stringify({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }] }));

const ANSWERS: Readonly<Record<string, Play>> = {
	...Object.fromEntries(
		Object.entries(BOMBS).flatMap(([encoding, bytes]) => [
			[`a bomb in ${encoding}`, packed(encoding, bytes, JSON_TYPE)],
			[`a stream that is a bomb in ${encoding}`, packed(encoding, bytes, SSE_TYPE)],
		]),
	),
	"a good answer in gzip": packed("gzip", Bun.gzipSync(good), JSON_TYPE),
	"a bomb in gzip twice": packed("gzip, gzip", Bun.gzipSync(BOMBS.gzip as Uint8Array<ArrayBuffer>), JSON_TYPE),
	"an unknown encoding": packed("x-lies", good, JSON_TYPE),
	"a refusal that is a bomb": once(
		`HTTP/1.1 500 No\r\n${JSON_TYPE}\r\ncontent-encoding: gzip\r\ncontent-length: ${BOMBS.gzip?.length}\r\n\r\n`,
		BOMBS.gzip as Uint8Array,
	),
	"one header without end": flood("HTTP/1.1 200 OK\r\nx-long: ", "v"),
	"headers without end": flood("HTTP/1.1 200 OK\r\n", "x-more: v\r\n"),
	"a status without end": flood("HTTP/1.1 200 ", "O"),
	"more to follow, without end": flood("", "HTTP/1.1 100 Continue\r\n\r\n"),
	"a body without end": flood(head(JSON_TYPE), "a"),
	"a body of chunks without end": chunked(head(JSON_TYPE, CHUNKED), "a"),
	"a small length next to chunks without end": chunked(head(JSON_TYPE, "content-length: 5", CHUNKED), "a"),
	"a length that is too large": flood(head(JSON_TYPE, `content-length: ${FLOOD_BYTES}`), "a"),
	"a length that is no number": flood(head(JSON_TYPE, "content-length: -5"), "a"),
	"two lengths": flood(head(JSON_TYPE, "content-length: 5", `content-length: ${FLOOD_BYTES}`), "a"),
	"a length that is too small": once(head(JSON_TYPE, "content-length: 5"), good),
	"a length that never comes": once(head(JSON_TYPE, "content-length: 500"), good),
	"a chunk's size without end": flood(head(JSON_TYPE, CHUNKED), "0"),
	"a chunk's extension without end": flood(`${head(JSON_TYPE, CHUNKED)}5;`, "a"),
	"trailers without end": flood(`${head(SSE_TYPE, CHUNKED)}0\r\nx-trailer: `, "a"),
	"an error's body without end": flood(`HTTP/1.1 400 No\r\n${JSON_TYPE}\r\n\r\n`, "a"),
	"an error's body of chunks without end": chunked(`HTTP/1.1 503 No\r\n${CHUNKED}\r\n\r\n`, "a"),
	"one line without end": flood(`${head(SSE_TYPE)}data: `, "a"),
	"one event without end": flood(head(SSE_TYPE), `data: ${"a".repeat(1000)}\n`),
	"comments without end": flood(head(SSE_TYPE), ": nothing\n"),
	"other fields without end": flood(head(SSE_TYPE), "id: 7\n"),
	"brackets without end": once(head(JSON_TYPE), "[".repeat((LONG ? 32 : 16) * MB)),
	"brackets without end in an event": once(head(SSE_TYPE), `data: ${"[".repeat(1_000_000)}\n\n`),
	"objects without end in an event": once(head(SSE_TYPE), `data: ${'{"a":'.repeat(200_000)}\n\n`),
	"brackets in an error": once(`HTTP/1.1 400 No\r\n${JSON_TYPE}\r\n\r\n`, "[".repeat(60_000)),
	"nothing at all": once(""),
	"no HTTP": flood("", "\0"),
};

/** Measures the longest turn of the event loop until the returned function is called. */
function watchLoop(): () => number {
	let worstMs = 0;
	let lastMs = performance.now();
	const timer = setInterval(() => {
		const nowMs = performance.now();
		worstMs = Math.max(worstMs, nowMs - lastMs);
		lastMs = nowMs;
	}, 5);
	return () => {
		clearInterval(timer);
		// Includes the time since the last turn of the event loop.
		return Math.max(worstMs, performance.now() - lastMs);
	};
}

/** Answers that are stopped by the same limit as another case; only the long run tests them. */
const LONG_ALONE = /next to chunks|too large|body of chunks|two lengths|more to follow|other fields|refusal that is/;

/** Each answer streamed or unstreamed, whichever costs more; the long run tests compressed answers in both ways. */
const CASES = Object.keys(ANSWERS).flatMap((name) => {
	if (!LONG && LONG_ALONE.test(name)) return [];
	const asked = ["unstreamed", name] as const;
	const streamed = ["streamed", name] as const;
	if (LONG && /\bin (gzip|zstd|br|deflate)\b/.test(name)) return [asked, streamed];
	return /stream|event|line|comments|fields|trailers/.test(name) ? [streamed] : [asked];
});

test.each(CASES)(
	"a call survives a hostile answer: %s: %s",
	async (how, name) => {
		play = ANSWERS[name] as Play;
		limits = BY_TIME.test(name) ? HASTY : USUAL;
		Bun.gc(true);
		const beforeBytes = process.memoryUsage.rss();
		let mostBytes = beforeBytes;
		const memory = setInterval(() => {
			mostBytes = Math.max(mostBytes, process.memoryUsage.rss());
		}, 10);
		const stop = watchLoop();
		const error =
			how === "unstreamed"
				? await askChat(upstreams, model, chatCall()).then(
						() => undefined,
						(reason) => reason,
					)
				: (await collect(openChat(upstreams, model, chatCall()))).error;
		const heldMs = stop();
		clearInterval(memory);
		expect([name, (error as UpstreamFailure | undefined)?.name]).toEqual([name, "UpstreamFailure"]);
		expect(mostBytes - beforeBytes).toBeLessThan(GROWTH_BYTES_MAX);
		expect([name, Math.min(Math.round(heldMs), HELD_MS_MAX)]).toEqual([name, Math.round(heldMs)]);
	},
	20_000,
);

test("an answer to a batch line has at most 8 MB", async () => {
	const long = (bytes: number) => {
		const body = JSON.stringify({
			choices: [{ index: 0, message: { role: "assistant", content: "x".repeat(bytes) }, finish_reason: "stop" }],
		});
		return once(head(JSON_TYPE, `content-length: ${body.length}`), body);
	};
	limits = AT_LEISURE;
	const asked = async (bytes: number, patient: boolean) => {
		play = long(bytes);
		return askChat(upstreams, model, chatCall({ patient })).then(
			({ reply }) => reply.choices.length,
			(error: UpstreamFailure) => error.private,
		);
	};
	expect([await asked(9 * MB, false), await asked(9 * MB, true), await asked(7 * MB, true)]).toEqual([
		1,
		"an answer beyond the limit",
		1,
	]);
});
