/** What the figures rest on: the client reads answers right however they are cut, the upstream counts right. */
import { afterEach, describe, expect, test } from "bun:test";
import { arrivalsOf } from "./arrivals.ts";
import { collectionsOf, longestStopsMs } from "./collections.ts";
import { STREAM_EVENTS, startFastUpstream } from "./fast-upstream.ts";
import { createFigures, ratioOf } from "./figures.ts";
import { FLOOR_STEPS, startFloor } from "./floor.ts";
import { runLoad } from "./load.ts";
import { describeMachine } from "./machine.ts";
import { runOpenLoad } from "./open-load.ts";
import { growthSvg } from "./plot.ts";
import { chatBody, streamBody } from "./prompts.ts";
import { chatRequestBytes, openConnection } from "./raw-connection.ts";
import { markdownOf } from "./report.ts";
import { percentile, spreadOf } from "./statistics.ts";
import { runStreams } from "./stream-client.ts";

const ends: (() => void)[] = [];
afterEach(() => {
	for (const end of ends.splice(0)) end();
});

/** A server that answers every request with these pieces, one write each. */
function serverOf(pieces: readonly string[]): number {
	const server = Bun.listen({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			open: (socket) => void socket.setNoDelay(true),
			async data(socket) {
				for (const piece of pieces) {
					socket.write(piece);
					socket.flush();
					await Bun.sleep(0);
				}
			},
		},
	});
	ends.push(() => server.stop(true));
	return server.port;
}

async function answersOf(port: number, requests: number): Promise<{ status: number; body: string }[]> {
	const answers: { status: number; body: string }[] = [];
	let body = "";
	let next = Promise.withResolvers<void>();
	const connection = await openConnection(port, {
		body(bytes) {
			body += bytes.toString();
		},
		answered(status, bodyBytes) {
			expect(bodyBytes).toBe(Buffer.byteLength(body));
			answers.push({ status, body });
			body = "";
			next.resolve();
		},
		broke: (why) => next.reject(new Error(why)),
	});
	for (let request = 0; request < requests; request++) {
		next = Promise.withResolvers<void>();
		connection.send(Buffer.from("POST / HTTP/1.1\r\n\r\n"));
		await next.promise;
	}
	connection.close();
	return answers;
}

describe("the client", () => {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n8\r\n, world!\r\n0\r\n\r\n";
	const fixed = "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy";

	test("reads a chunked answer whole, cut at every place", async () => {
		for (let cut = 1; cut < chunked.length; cut++) {
			const port = serverOf([chunked.slice(0, cut), chunked.slice(cut)]);
			expect(await answersOf(port, 1)).toEqual([{ status: 200, body: "hello, world!" }]);
		}
	});

	test("reads it byte by byte, twice on one connection", async () => {
		const answer = { status: 200, body: "hello, world!" };
		expect(await answersOf(serverOf([...chunked]), 2)).toEqual([answer, answer]);
	});

	test("reads an answer with a length, cut at every place, with its status", async () => {
		for (let cut = 1; cut < fixed.length; cut++) {
			expect(await answersOf(serverOf([fixed.slice(0, cut), fixed.slice(cut)]), 1)).toEqual([
				{ status: 503, body: "busy" },
			]);
		}
	});

	test("a load counts an answer with another status as a failure", async () => {
		const load = { port: serverOf([fixed]), connections: 2, request: () => Buffer.from("x"), durationMs: 60_000 };
		const { requests, failures, firstFailure } = await runLoad({ ...load, requestsMax: 10 });
		expect({ requests, failures, firstFailure }).toEqual({ requests: 10, failures: 10, firstFailure: "status 503" });
	});
});

describe("the open loop", () => {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	const schedule = { kind: "fixed", perSecond: 100, durationMs: 200, seed: 1 } as const;
	const request = () => Buffer.from("x");
	const ascending = (values: Float64Array) => [...values].sort((a, b) => a - b);

	/** Calls `asked` with each request's answer. */
	function serverThat(asked: (reply: () => void) => void): number {
		const server = Bun.listen({
			hostname: "127.0.0.1",
			port: 0,
			socket: { data: (socket) => asked(() => void socket.write(answer)) },
		});
		ends.push(() => server.stop(true));
		return server.port;
	}

	test("arrivals come at the rate that was asked for, evenly or as chance has it, the same from the same seed", () => {
		expect([...arrivalsOf({ ...schedule, durationMs: 50 })]).toEqual([0, 10, 20, 30, 40]);
		const chance = { kind: "poisson", perSecond: 1_000, durationMs: 20_000, seed: 7 } as const;
		const due = arrivalsOf(chance);
		expect(arrivalsOf(chance)).toEqual(due);
		expect(arrivalsOf({ ...chance, seed: 8 })).not.toEqual(due);
		expect(Math.abs(due.length - 20_000)).toBeLessThan(600);
		// Of exponential gaps 1 in e is longer than the mean.
		const longer = due.filter((at, index) => at - (due[index - 1] ?? 0) > 1).length / due.length;
		expect(longer).toBeCloseTo(1 / Math.E, 1);
	});

	test("a server's known delay is the least that it reports, and no answer is missed", async () => {
		const port = serverThat((reply) => void setTimeout(reply, 40));
		const result = await runOpenLoad({ ...schedule, port, connections: 20, request });
		expect(result).toMatchObject({ requests: 20, failures: 0 });
		const [least = 0] = ascending(result.latenciesMs);
		expect(least).toBeGreaterThan(39);
		expect(result.latenciesMs.length).toBe(20);
	});

	test("a server that stops for a while is charged for everybody who came meanwhile", async () => {
		const held: (() => void)[] = [];
		const port = serverThat((reply) => {
			if (held.push(reply) === 20) for (const one of held) one();
		});
		const { latenciesMs, failures } = await runOpenLoad({ ...schedule, port, connections: 20, request });
		expect(failures).toBe(0);
		// The last one came 190 ms after the first, 180 after the second, and so on.
		for (const [index, waited] of ascending(latenciesMs).entries()) expect(waited).toBeGreaterThan(10 * index - 1);
	});

	test("what finds no free connection waits, and its time runs from when it was due", async () => {
		const port = serverThat((reply) => void setTimeout(reply, 20));
		const result = await runOpenLoad({ ...schedule, port, connections: 1, request });
		expect(result.requests).toBe(20);
		// One after the other at 20 ms each, and due every 10: each waits 10 ms longer than the one before.
		for (const [index, waited] of ascending(result.latenciesMs).entries())
			expect(waited).toBeGreaterThan(19 + 9 * index);
		expect(Math.max(...result.lateMs)).toBeGreaterThan(9 * 19);
	});

	test("a stream counts from its first token, and one without tokens or end is a failure", async () => {
		const upstream = startFastUpstream();
		ends.push(() => upstream.stop());
		const bytes = chatRequestBytes(upstream, "secret", streamBody("burst"));
		const streamed = { ...schedule, connections: 20, streamed: true };
		const whole = await runOpenLoad({ ...streamed, port: upstream.port, request: () => bytes });
		expect(whole).toMatchObject({ requests: 20, failures: 0 });
		expect(whole.firstMs.length).toBe(20);
		const none = await runOpenLoad({ ...streamed, port: serverThat((reply) => reply()), request });
		expect(none).toMatchObject({ requests: 20, failures: 20, firstFailure: "a stream without a token" });
	});
});

describe("the upstream", () => {
	test("counts what it served: every answer once, the usage that it sent", async () => {
		const upstream = startFastUpstream();
		ends.push(() => upstream.stop());
		const request = chatRequestBytes(upstream, "secret", chatBody("plain", 100));
		const sums = { requests: 0, prompt: 0, completion: 0 };
		const load = { port: upstream.port, connections: 3, request: () => request, durationMs: 60_000 };
		await runLoad({ ...load, requestsMax: 50 });
		for (let extra = 0; extra < 20; extra++) {
			const answer = await fetch(`http://127.0.0.1:${upstream.port}/v1/chat/completions`, {
				method: "POST",
				body: chatBody("plain", 100),
			});
			const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
			sums.prompt += usage.prompt_tokens;
			sums.completion += usage.completion_tokens;
		}
		const { requests, prompt, completion } = upstream.count();
		expect(requests).toBe(70);
		// Sixteen variants in turn: the fifty before came to three whole turns and two more.
		expect(prompt).toBeGreaterThan(sums.prompt);
		expect(prompt - 100 * 70).toBe(completion - 10 * 70);
	});

	test("finds the model wherever a body names it", async () => {
		const upstream = startFastUpstream();
		ends.push(() => upstream.stop());
		const body = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(100_000) }], model: "burst" });
		const answer = await fetch(`http://127.0.0.1:${upstream.port}/v1/chat/completions`, { method: "POST", body });
		expect(answer.headers.get("content-type")).toBe("text/event-stream");
		expect((await answer.text()).endsWith("data: [DONE]\n\n")).toBe(true);
	});

	test("streams whole answers, and the client stamps each event", async () => {
		const upstream = startFastUpstream();
		ends.push(() => upstream.stop());
		for (const model of ["burst", "stream"]) {
			const request = chatRequestBytes(upstream, "secret", streamBody(model));
			const result = await runStreams({
				port: upstream.port,
				streams: 4,
				request: () => request,
				durationMs: 50,
			});
			expect(result.firstFailure).toBeUndefined();
			expect(result.events).toBe(result.streams * STREAM_EVENTS);
			expect(result.delaysMs.length).toBe(result.events);
			expect(Math.min(...result.delaysMs)).toBeGreaterThan(-1);
			expect(result.firstMs.length).toBe(result.streams);
		}
	});
});

test("every step of the floor passes a request and its answer on", async () => {
	const upstream = startFastUpstream();
	ends.push(() => upstream.stop());
	for (const [steps, name] of FLOOR_STEPS.entries()) {
		const floor = startFloor(steps, `http://127.0.0.1:${upstream.port}/v1/chat/completions`);
		ends.push(floor.stop);
		const bytes = chatRequestBytes(floor, "secret", chatBody("plain", 100_000));
		const load = { port: floor.port, connections: 4, request: () => bytes, durationMs: 60_000, requestsMax: 20 };
		const { requests, failures } = await runLoad(load);
		expect({ name, requests, failures }).toEqual({ name, requests: 20, failures: 0 });
		expect(upstream.count().requests).toBe(20 * steps);
	}
});

describe("the figures", () => {
	test("medians, ranges, percentiles and ratios round by round", () => {
		expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, rounds: 3 });
		expect(spreadOf([4, 1, 2, 3]).median).toBe(2.5);
		expect(
			percentile(
				Float64Array.from({ length: 1_000 }, (_, index) => 999 - index),
				0.99,
			),
		).toBe(990);
		const figures = createFigures();
		for (const [own, floor] of [
			[10, 5],
			[30, 10],
			[8, 2],
		]) {
			figures.add("plain", "x", "µs", "tollgate", own as number);
			figures.add("plain", "x", "µs", "bare Bun", floor as number);
		}
		const ratio = ratioOf(figures.find("plain", "x", "tollgate"), figures.find("plain", "x", "bare Bun"));
		expect(ratio).toEqual({ median: 3, min: 2, max: 4, rounds: 3 });
	});

	test("growth is drawn with a mark for every row, nothing where it was not measured", () => {
		const figures = createFigures();
		expect(growthSvg(figures)).toBeUndefined();
		for (const row of [
			"1 keys in Postgres, 1 in use",
			"1,000,000 keys in Postgres, 100,000 in use",
			"2 instances on one database",
		]) {
			for (const value of [40, 50]) figures.add("growth", "CPU per request", "µs", row, value);
		}
		const svg = growthSvg(figures) ?? "";
		expect(svg.match(/<circle/g)?.length).toBe(3);
		expect(svg).not.toContain("NaN");
	});

	test("the collector's log gives the stops of a collection, all of them, by kind, and what was allocated", () => {
		const log = `[GC<0x1>: starting 14.5ms]
Requesting GC because bytes allocated this cycle: 8390650 exceed bytes allowed: 8388608 normal bytes: 8390650 oversized bytes: 0
[GC<0x1>: START M 8901kb => EdenCollection, a=0kb v=0kb i#3:P<ShM> => 298kb, p=2.037300ms (max 2.037300), cycle 1.99ms END]
GC END!
Requesting GC because bytes allocated this cycle: 950 exceed bytes allowed: 900 normal bytes: 800
Requesting GC because bytes allocated this cycle: 1000 exceed Options::gcMaxHeapSize(): 900
[GC<0x1>: START M 9kb => FullCollection, a=0kb v=0kb i#3:P<ShM> => 298kb, p=7.5ms (max 7.5), cycle 1.99ms END]
[GC<0x1>: START M 82466kb => EdenCollection, a=0kb mu=0.600 v=0kb i#1:N<CsMs> 1+383 p=1.25ms (max 14.1)...]
[GC<0x1>: M a=1kb hf=0.000 mu=0.600 v=267kb o=6159 b=50 0+50 p=0.5ms (max 14.1)...]
[GC<0x1>: M a=1kb mu=0.600 v=606kb i#2:N<WsOJw>Pbc 258+50 v=666kb i#3:P<Ws>Pbc => 63815kb, p=3.5ms (max 14.1), cycle 24.1ms END]
[GC<0x1>: epilogue 0.031ms]
[GC<0x1>: START M 82466kb => EdenCollection, a=0kb mu=0.600 v=0kb i#1:N<CsMs> 1+383 p=1.25ms (max 14.1)...]`;
		const { young, whole, allocatedBytes } = collectionsOf(log);
		const first = { longestStopMs: 2.0373, stoppedMs: 2.0373 };
		expect(young).toEqual([first, { longestStopMs: 3.5, stoppedMs: 5.25 }]);
		expect([...longestStopsMs(young)]).toEqual([2.0373, 3.5]);
		expect(whole).toEqual([{ longestStopMs: 7.5, stoppedMs: 7.5 }]);
		expect(allocatedBytes).toBe(8_391_650);
	});

	test("a goal is reached, or not, by the median of what was measured side by side", () => {
		const figures = createFigures();
		for (const own of [70, 50, 90]) {
			figures.add("plain", "CPU per request, small prompt", "µs", "tollgate", own);
			figures.add("plain", "CPU per request, small prompt", "µs", "bare Bun", 35);
			figures.add("plain", "CPU per request, small prompt", "µs", "nginx", 25);
		}
		figures.add("settle", "settlements to Postgres", "1/s", "tollgate", 79_000);
		figures.add("settle", "settlements to Postgres", "1/s", "floor", 158_000);
		const mode = {
			preset: "goals",
			quick: false,
			windowMs: 1,
			warmUpMs: 1,
			rounds: 3,
			streams: 1,
			fromSource: false,
		} as const;
		const machine = describeMachine();
		const text = markdownOf({ at: "2026-01-01", machine, postgres: "18", mode, figures, checks: [], seconds: 1 });
		const rows = text.split("\n").filter((line) => line.includes("`bench -- "));
		expect(
			rows.map((row) =>
				row
					.split("|")
					.slice(5, 10)
					.map((cell) => cell.trim()),
			),
		).toEqual([
			["2.00 [1.43–2.57]", "goal", "", "", "`bench -- plain`"],
			["2.80 [2.00–3.60]", "stretch", "", "", "`bench -- plain`"],
			["79,000", "**no**", "158,000", "0.50 ×", "`bench -- settle`"],
		]);
	});
});
