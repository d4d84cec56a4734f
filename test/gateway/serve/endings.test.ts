/**
 * Every ending of a request settles it once and exactly, including endings that real servers and clients cannot cause.
 */
import { describe, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../../src/catalog/service-limits.ts";
import { chat } from "../../../src/gateway/chat/chat-request.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../../../src/gateway/connection.ts";
import { KEEP_ALIVE_COMMENT } from "../../../src/gateway/generated-text.ts";
import { serveRequest } from "../../../src/gateway/serve/serve.ts";
import { READER_STALL_MS } from "../../../src/gateway/serve/streaming.ts";
import { UpstreamFailure } from "../../../src/upstream/call/failure.ts";
import {
	costOf,
	createRoad,
	fakeRequest,
	NOTHING_LEFT,
	nextTurn,
	type Road,
	type RoadOptions,
	readerOf,
	type TextReader,
} from "../../support/road.ts";

/** A call that takes longer than this counts as waiting. */
const MOMENT_MS = 100;
const STREAM = { stream: true, max_tokens: 1_000 };
/** Text that is larger than the buffers of a slow client's connection. */
const LONG = "w".repeat(128 * 1024);

async function sent(body: Record<string, unknown>, options: RoadOptions = {}) {
	const road = createRoad(options);
	const made = fakeRequest(body);
	const answer = serveRequest(road.deps, chat, made.connection);
	return { road, ...made, answer, call: await road.call() };
}

async function streaming(options: RoadOptions = {}) {
	const request = await sent(STREAM, options);
	request.call.arrive("w1");
	const response = await request.answer;
	expect(response.status).toBe(200);
	const reader = readerOf(response);
	expect((await reader.read()).value).toContain("w1");
	return { ...request, reader };
}

async function rest(reader: TextReader): Promise<string> {
	let text = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return text;
		text += value;
	}
}

function settledOnce(road: Road, expected: object): void {
	expect(road.settled).toMatchObject([expected]);
	expect(road.leftovers()).toEqual(NOTHING_LEFT);
}

async function errorOf(answer: Promise<Response>) {
	const response = await answer;
	const { error } = (await response.json()) as { error: { code: string } };
	return [response.status, error.code];
}

describe("a request that ends before its status is sent", () => {
	test("is not charged if the client leaves before admission", async () => {
		for (const body of [STREAM, {}]) {
			const road = createRoad();
			const { asked, grant } = road.withholdCredit();
			const { connection, leave } = fakeRequest(body);
			const answer = serveRequest(road.deps, chat, connection);
			await asked;
			leave();
			grant();
			expect(await errorOf(answer)).toEqual([408, "request_timeout"]);
			settledOnce(road, { ending: "client_left", charged: 0 });
			if (body === STREAM) expect(road.calls).toEqual([]);
		}
	});

	test("is settled at once if the client leaves, whatever answer arrives later", async () => {
		const { road, leave, call, answer } = await sent(STREAM);
		call.isDeaf = true;
		leave();
		settledOnce(road, { ending: "client_left", charged: 0, status: 499 });
		call.arrive("late");
		call.end();
		expect(await errorOf(answer)).toEqual([408, "request_timeout"]);
		settledOnce(road, { ending: "client_left", charged: 0 });
	});

	test("has one outcome if the process stops during the first event", async () => {
		const { road, call, answer, timeouts } = await sent(STREAM);
		call.arrive("w1");
		road.openStreams.shutDown();
		expect(await errorOf(answer)).toEqual([503, "service_unavailable"]);
		settledOnce(road, { ending: "shutdown", charged: 0, status: 503 });
		expect(timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
	});

	test("gets its status at a gateway stop although the model server does not respond", async () => {
		const { road, call, answer } = await sent(STREAM, { holdStatusMs: 500 });
		call.isDeaf = true;
		road.openStreams.shutDown();
		road.clock.advance(500);
		expect(await errorOf(answer)).toEqual([503, "service_unavailable"]);
		settledOnce(road, { ending: "shutdown", charged: 0 });
	});

	test("is not charged if the call of the model throws", async () => {
		for (const body of [STREAM, {}]) {
			const road = createRoad();
			const thrown = () => {
				throw new Error("scripted");
			};
			const upstreams = { ...road.deps.upstreams, open: thrown, call: thrown };
			expect(await errorOf(serveRequest({ ...road.deps, upstreams }, chat, fakeRequest(body).connection))).toEqual([
				500,
				"internal_error",
			]);
			settledOnce(road, { ending: "upstream_failed", charged: 0, status: 500 });
		}
	});

	test("releases its reservation if the connection's timeout cannot be set", async () => {
		const setIdleTimeout = () => {
			throw new Error("scripted: the connection is gone");
		};
		const road = createRoad();
		const answer = await serveRequest(road.deps, chat, { ...fakeRequest(STREAM).connection, setIdleTimeout });
		expect(answer.status).toBe(500);
		settledOnce(road, { charged: 0 });

		const whole = createRoad();
		const inOnePiece = serveRequest(whole.deps, chat, { ...fakeRequest({}).connection, setIdleTimeout });
		const call = await whole.call();
		whole.clock.advance(MOMENT_MS);
		call.reply(7);
		expect((await inOnePiece).status).toBe(200);
		settledOnce(whole, { charged: costOf(7) });
	});
});

describe("an answer that is not streamed", () => {
	test("is charged before it is sent", async () => {
		const { road, call, answer } = await sent({});
		call.reply(7);
		expect((await answer).status).toBe(200);
		settledOnce(road, { ending: "finished", charged: costOf(7), basis: "exact" });
	});

	test("has no idle timeout while the model server works", async () => {
		const { road, call, answer, timeouts } = await sent({});
		road.clock.advance(MOMENT_MS);
		expect(timeouts).toEqual([0]);
		call.reply(7);
		await answer;
		expect(timeouts).toEqual([0, IDLE_TIMEOUT_S]);
		const short = await sent({});
		short.call.reply(7);
		await short.answer;
		short.road.clock.advance(MOMENT_MS);
		expect(short.timeouts).toEqual([]);
	});

	test("is neither charged nor delivered if its cost cannot be computed", async () => {
		const { road, call, answer } = await sent({});
		const whole = { ...chat.whole, bill: () => broken() };
		const second = serveRequest(road.deps, { ...chat, whole }, fakeRequest({}).connection);
		(await road.call(2)).reply(7);
		expect(await errorOf(second)).toEqual([500, "internal_error"]);
		expect(road.settled).toMatchObject([{ ending: "upstream_failed", charged: 0, status: 500 }]);
		call.reply(1);
		await answer;
		expect(road.settled).toHaveLength(2);
	});

	test("is charged once if it cannot be serialized or recorded", async () => {
		const road = createRoad();
		const whole = { ...chat.whole, write: () => broken() };
		const unwritten = serveRequest(road.deps, { ...chat, whole }, fakeRequest({}).connection);
		(await road.call()).reply(7);
		expect(await errorOf(unwritten)).toEqual([500, "internal_error"]);
		settledOnce(road, { ending: "finished", charged: costOf(7) });

		const { road: host, call, answer } = await sent({}, { mode: "host" });
		host.journal.isDurable = false;
		call.reply(7);
		await nextTurn();
		host.journal.syncs[0]?.reject(new Error("scripted: the disk failed"));
		expect(await errorOf(answer)).toEqual([500, "internal_error"]);
		settledOnce(host, { ending: "finished", charged: costOf(7) });
	});

	test("is sent only once its settlement is durable", async () => {
		const { road, call, answer } = await sent({}, { mode: "host" });
		road.journal.isDurable = false;
		let left = false;
		void answer.then(() => {
			left = true;
		});
		call.reply(7);
		await nextTurn();
		expect([road.settled.length, left]).toEqual([1, false]);
		for (const sync of road.journal.syncs) sync.resolve();
		expect((await answer).status).toBe(200);
	});
});

describe("a stream", () => {
	test("is not charged for output that arrives after the client left", async () => {
		const { road, call, leave } = await streaming();
		call.isDeaf = true;
		leave();
		call.arrive("w2", "w3");
		call.end();
		await nextTurn();
		settledOnce(road, { ending: "client_left", charged: costOf(1) });
	});

	test("is charged the recorded output if the process stops during a journal write", async () => {
		const { road, call, reader } = await streaming({ mode: "host" });
		road.journal.isDurable = false;
		call.arrive("w2");
		await nextTurn();
		road.openStreams.shutDown();
		for (const sync of road.journal.syncs) sync.resolve();
		const text = await rest(reader);
		expect(text).not.toContain("w2");
		expect(text).toContain('"service_unavailable"');
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
		settledOnce(road, { ending: "shutdown", charged: costOf(2) });
	});

	test("delivers output only after the journal has recorded it", async () => {
		for (const counts of [true, false]) {
			const request = await sent(STREAM);
			request.call.counts = counts;
			request.call.arrive("w1");
			const reader = readerOf(await request.answer);
			await reader.read();
			request.road.journal.isBroken = true;
			request.call.arrive(...Array.from({ length: 400 }, () => "never"));
			const text = await rest(reader);
			expect(text).not.toContain("never");
			expect(text).toContain('"internal_error"');
			const [event] = request.road.settled;
			expect(event).toMatchObject({ ending: "upstream_failed", completionTokens: 1 });
			if (counts) expect(Number(event?.charged)).toBe(costOf(1));
			expect(request.road.settled).toHaveLength(1);
			expect(request.call.isClosed).toBe(true);
		}
	});

	test("closes its model call if its journal record fails", async () => {
		const { road, call, reader } = await streaming({ mode: "host" });
		road.journal.isDurable = false;
		call.arrive("w2");
		await nextTurn();
		for (const sync of road.journal.syncs) sync.reject(new Error("scripted: the disk failed"));
		expect(await rest(reader)).not.toContain("w2");
		settledOnce(road, { ending: "upstream_failed", charged: costOf(2) });
		expect(call.isClosed).toBe(true);
	});

	test("is charged the journal's bound if its cost cannot be computed", async () => {
		const { road, call, reader } = await streaming();
		const bound = road.journal.progress.at(-1)?.bound;
		// A usage record with negative counts, which cannot be billed.
		call.usage = { promptTokens: -1, completionTokens: -1, cachedTokens: 0, reasoningTokens: 0 };
		call.fail();
		expect(await rest(reader)).toContain('"upstream_error"');
		expect(bound).toBeGreaterThan(costOf(1));
		settledOnce(road, { ending: "upstream_died", charged: bound, basis: "estimated" });
		expect(road.logged).toContain("a bill could not be made");
	});

	test("ends with an error if its settlement fails", async () => {
		const { road, call, reader } = await streaming({ mode: "host" });
		road.journal.isDurable = false;
		call.end();
		await nextTurn();
		for (const sync of road.journal.syncs) sync.reject(new Error("scripted: the disk failed"));
		const text = await rest(reader);
		expect(text).toContain('"internal_error"');
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
		settledOnce(road, { ending: "finished", charged: costOf(1) });
	});

	test("ends if its client does not read and another request needs its place", async () => {
		const { road, call, reader } = await streaming();
		call.arrive(LONG);
		await nextTurn();
		// A stalled stream stays open while no other request needs its place at the server.
		road.clock.advance(READER_STALL_MS + 1_000);
		expect(call.isClosed).toBe(false);
		road.contend(true);
		road.clock.advance(1_000);
		expect(call.isClosed).toBe(true);
		const text = await rest(reader);
		expect(text).toContain(LONG);
		expect(text).toContain('"request_timeout"');
		settledOnce(road, { ending: "client_left", charged: costOf(2) });
	});

	test("ends if its client does not read and its account has too many unread answers", async () => {
		const { road, call, reader } = await streaming();
		const { unreadAnswers } = road.deps.clients;
		unreadAnswers.add(road.key.accountId, DEFAULT_LIMITS.answerMemoryAccountBytesMax - 1024 * 1024);
		call.arrive(LONG);
		await nextTurn();
		// The stream counts only after a pause of its client, and then exceeds the limit.
		expect(unreadAnswers.excess(road.key.accountId)).toBeUndefined();
		road.clock.advance(2_000);
		expect(call.isClosed).toBe(true);
		expect(await rest(reader)).toContain('"request_timeout"');
		expect(unreadAnswers.bytes()).toBe(DEFAULT_LIMITS.answerMemoryAccountBytesMax - 1024 * 1024);
		settledOnce(road, { ending: "client_left", charged: costOf(2) });
	});

	test("counts as unread until its client reads again", async () => {
		const { road, call, reader } = await streaming();
		const { unreadAnswers } = road.deps.clients;
		call.arrive(LONG);
		await nextTurn();
		road.clock.advance(2_000);
		expect(unreadAnswers.bytes()).toBeGreaterThan(0);
		await reader.read();
		await nextTurn();
		expect(unreadAnswers.bytes()).toBe(0);
		call.end();
		await rest(reader);
	});

	test("keeps its place at the model server while it waits for output", async () => {
		const { road, call, reader } = await streaming();
		road.contend(true);
		const next = reader.read();
		for (let second = 0; second < 30; second += 1) {
			road.clock.advance(1_000);
			await nextTurn();
		}
		call.arrive("w2");
		for (let text = (await next).value as string; !text.includes("w2"); text = (await reader.read()).value as string)
			expect(text.replaceAll(KEEP_ALIVE_COMMENT, "")).toBe("");
		call.end();
		expect(await rest(reader)).toContain("[DONE]");
		settledOnce(road, { ending: "finished", charged: costOf(2) });
	});

	test("ends if its client's pauses in reading add up to the limit", async () => {
		const { road, call, reader } = await streaming();
		road.contend(true);
		for (let nth = 0; nth < 3; nth += 1) {
			call.arrive(LONG);
			await nextTurn();
			road.clock.advance(READER_STALL_MS / 4);
			expect(call.isClosed).toBe(false);
			await reader.read();
		}
		call.arrive(LONG);
		await nextTurn();
		road.clock.advance(READER_STALL_MS / 4 + 1_000);
		expect(call.isClosed).toBe(true);
		settledOnce(road, { ending: "client_left", charged: costOf(5) });
	});

	test("sends comments only to a client that is reading", async () => {
		const { road, call, reader } = await streaming();
		road.clock.advance(3 * DEFAULT_LIMITS.keepAliveCommentMs);
		expect((await reader.read()).value).toContain(KEEP_ALIVE_COMMENT);
		call.arrive(LONG);
		await nextTurn();
		road.clock.advance(3 * DEFAULT_LIMITS.keepAliveCommentMs);
		call.end();
		expect(await rest(reader)).not.toContain(KEEP_ALIVE_COMMENT);
		settledOnce(road, { ending: "finished", charged: costOf(2) });
	});

	test("measures pauses of the model server, not pauses of the client", async () => {
		const { road, call, reader } = await streaming();
		road.clock.advance(40);
		call.arrive(LONG);
		await nextTurn();
		road.clock.advance(5_000);
		await reader.read();
		await nextTurn();
		road.clock.advance(70);
		call.arrive("w3");
		await reader.read();
		expect(road.gaps).toEqual([40, 70]);
		call.end();
		await rest(reader);
	});

	test("ends with an error if the process stops before its body is read", async () => {
		const { road, call, answer } = await sent(STREAM);
		call.arrive("w1");
		const response = await answer;
		road.openStreams.shutDown();
		const text = await rest(readerOf(response));
		expect(text).toContain('"service_unavailable"');
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
		expect(text).not.toContain("w1");
		settledOnce(road, { ending: "shutdown", charged: 0 });
	});

	test("sends an error event without a charge if it fails after the status", async () => {
		const { road, call, answer } = await sent(STREAM, { holdStatusMs: 500 });
		road.clock.advance(500);
		const reader = readerOf(await answer);
		call.fail(new UpstreamFailure("timeout", { private: "scripted" }));
		expect(await rest(reader)).toContain('"upstream_timeout"');
		settledOnce(road, { ending: "upstream_silent", charged: 0, status: 504 });
	});
});

describe("the idle timeout of a stream's connection", () => {
	test("is raised until the stream ends", async () => {
		const { call, reader, timeouts } = await streaming();
		expect(timeouts).toEqual([STREAM_TIMEOUT_S]);
		call.end();
		await rest(reader);
		expect(timeouts).toEqual([STREAM_TIMEOUT_S, IDLE_TIMEOUT_S]);
	});

	test("is restored after a failure before or after the first event", async () => {
		const early = await sent(STREAM);
		early.call.fail();
		expect(await errorOf(early.answer)).toEqual([502, "upstream_error"]);
		expect(early.timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
		const late = await streaming();
		late.call.fail();
		await rest(late.reader);
		expect(late.timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
	});

	test("is off while the status is held back for longer than the timeout", async () => {
		const { road, call, answer, timeouts } = await sent(STREAM, { holdStatusMs: 300_000 });
		expect(timeouts).toEqual([0]);
		road.clock.advance(300_000);
		const reader = readerOf(await answer);
		expect((await reader.read()).value).toBe(KEEP_ALIVE_COMMENT);
		expect(timeouts).toEqual([0, STREAM_TIMEOUT_S]);
		call.arrive("w1");
		expect((await reader.read()).value).toContain("w1");
	});
});

function broken(): never {
	throw new Error("scripted");
}
