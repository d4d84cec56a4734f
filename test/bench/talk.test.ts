/** People who talk with a model: their lengths are those that were published, and each way that a stream ends is counted. */
import { afterEach, describe, expect, test } from "bun:test";
import { createRandom } from "../support/random.ts";
import { startFastUpstream } from "./fast-upstream.ts";
import { createHistogram } from "./histogram.ts";
import { streamBody } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import type { TalkOptions } from "./talk-client.ts";
import { startTalk } from "./talk-client.ts";
import { ANSWER_TOKENS_MAX, drawLengths, SHAPES } from "./traffic.ts";

const ends: (() => void)[] = [];
afterEach(() => {
	for (const end of ends.splice(0)) end();
});

/** Talks with the bench's model server in streams without pauses, so that a test is over at once. */
function burstsOf(): Pick<TalkOptions, "port" | "request" | "rampMs" | "hangUpShare" | "seed"> {
	const upstream = startFastUpstream();
	ends.push(() => upstream.stop());
	const bytes = chatRequestBytes(upstream, "secret", streamBody("burst"));
	return { port: upstream.port, request: () => ({ bytes, owner: 1 }), rampMs: 0, hangUpShare: 0, seed: 1 };
}

/** A server that answers everything with these bytes. */
function serverOf(answer: string): number {
	const server = Bun.listen({
		hostname: "127.0.0.1",
		port: 0,
		socket: { data: (socket) => void socket.write(answer) },
	});
	ends.push(() => server.stop(true));
	return server.port;
}

test("a histogram knows each percentile to two hundredths", () => {
	const histogram = createHistogram();
	expect(histogram.percentileMicros(0.5)).toBeNaN();
	for (let value = 1; value <= 10_000; value++) histogram.add(value / 10);
	expect(histogram.count()).toBe(10_000);
	for (const share of [0.01, 0.5, 0.99]) {
		const ratio = histogram.percentileMicros(share) / (share * 1_000_000);
		expect(Math.abs(ratio - 1)).toBeLessThan(0.02);
	}
	histogram.add(-5);
	expect(histogram.percentileMicros(0)).toBe(1);
});

test("lengths are drawn as the published ones lie, none beyond the limit", () => {
	expect(SHAPES.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1, 9);
	const random = createRandom(5);
	const drawn = Array.from({ length: 40_000 }, () => drawLengths(random));
	const median = (values: number[]) => values.sort((a, b) => a - b)[values.length / 2] as number;
	const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
	const prompts = drawn.map(({ promptTokens }) => promptTokens);
	const answers = drawn.map(({ answerTokens }) => answerTokens);
	expect(Math.max(...answers)).toBe(ANSWER_TOKENS_MAX);
	expect(Math.min(...answers, ...prompts)).toBeGreaterThan(0);
	expect(median(prompts)).toBeWithin(380, 620);
	expect(median(answers)).toBeWithin(130, 230);
	// Between the means of 161 and 338 and those of the long prompts and short answers.
	expect(mean(prompts)).toBeWithin(850, 1_150);
	expect(mean(answers)).toBeWithin(200, 290);
});

describe("people", () => {
	test("each stream is followed by the next one, and every token is felt", async () => {
		const talk = startTalk({ ...burstsOf(), streams: 3, durationMs: 200 });
		const result = await talk.ended;
		expect(result).toMatchObject({ failures: 0, hungUp: 0, refused: 0 });
		expect(result.streams).toBeGreaterThan(3);
		expect(result.tokens).toBe(100 * result.streams);
		const { firstToken, token } = talk.felt();
		expect(firstToken.count()).toBe(result.streams);
		expect(token.count()).toBe(result.tokens);
		expect(talk.felt().token.count()).toBe(0);
	});

	test("who hangs up has no whole stream and is no failure", async () => {
		const { port, ...rest } = burstsOf();
		const bytes = chatRequestBytes({ port }, "secret", streamBody("talk"));
		const request = () => ({ bytes, owner: 1 });
		const talk = startTalk({ ...rest, port, request, streams: 4, durationMs: 1_000, hangUpShare: 1 });
		const { streams, hungUp, failures, tokens } = await talk.ended;
		expect(failures).toBe(0);
		expect(streams).toBeGreaterThan(3);
		// An answer may be shorter than their patience.
		expect(hungUp).toBeGreaterThan(0);
		expect(tokens).toBeLessThan(61 * streams);
	});

	test("to cut off ends all at once", async () => {
		const { port, ...rest } = burstsOf();
		const bytes = chatRequestBytes({ port }, "secret", streamBody("idle"));
		const request = () => ({ bytes, owner: 1 });
		const talk = startTalk({ ...rest, port, request, streams: 4, durationMs: Number.POSITIVE_INFINITY });
		while (talk.tokens() < 4) await Bun.sleep(1);
		talk.cut();
		expect(await talk.ended).toEqual({
			streams: 4,
			tokens: 4,
			hungUp: 4,
			refused: 0,
			failures: 0,
			firstFailure: undefined,
		});
	});

	test("a stream that stops short, or counts otherwise than its usage, is a failure", async () => {
		const stream = (...events: string[]) => {
			const body = events.map((event) => `data: ${event}\n\n`).join("");
			return `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
		};
		const token = '{"choices":[{"delta":{"content":"1700000000000000 "}}]}';
		const usage = (tokens: number) => `{"usage":{"completion_tokens":${tokens},"total_tokens":9}}`;
		const failureOf = async (answer: string) => {
			const options = { ...burstsOf(), port: serverOf(answer), streams: 1, durationMs: 50 };
			return (await startTalk(options).ended).firstFailure;
		};
		expect(await failureOf(stream(token, usage(1), "[DONE]"))).toBeUndefined();
		expect(await failureOf(stream(token, usage(1)))).toBe("a stream without its end");
		expect(await failureOf(stream(token, usage(2), "[DONE]"))).toBe("another number of tokens than the usage says");
	});

	test("an answer that is not 200 is a failure unless it was to be expected", async () => {
		const port = serverOf("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n");
		const options = { ...burstsOf(), port, streams: 1, durationMs: 50 };
		expect((await startTalk(options).ended).firstFailure).toBe("status 401");
		const told: unknown[] = [];
		const verdict = (status: number, owner: number) => {
			told.push([status, owner]);
			return "refused" as const;
		};
		const result = await startTalk({ ...options, verdict }).ended;
		expect(result.failures).toBe(0);
		expect(result.refused).toBe(result.streams);
		expect(told[0]).toEqual([401, 1]);
	});
});
