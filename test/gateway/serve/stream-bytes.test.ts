/** A client receives each byte of a stream once, in order, without delay, with valid framing. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { answersIn, eventsOf, openRaw, parseRaw, type RawResponse, rawPost } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, type SeenRequest, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream("vllm");
const models = chatModel({ url: upstream.url, dialect: "vllm" });
const service = await withService({ models });

const PATH = "/v1/chat/completions";
const CLOSE = { connection: "close" };
const PROMPT = 5;
const MB = "é".repeat(500_000);

const streamed = (secret: string, headers: Record<string, string> = {}) =>
	rawPost(PATH, secret, ask("one two", { stream: true }), headers);

function wordsOf(body: string): string[] {
	const events = eventsOf(body) as { choices?: { delta: { content?: string } }[] }[];
	return events.map(({ choices }) => choices?.[0]?.delta.content ?? "").filter((word) => word !== "");
}

/** Compares whole streams without printing the difference, which would be megabytes long. */
function expectWords(answer: RawResponse | undefined, words: readonly string[]): void {
	expect(answer?.status).toBe(200);
	expect(answer?.body.split("data: [DONE]\n\n").length).toBe(2);
	expect(answer?.body.endsWith("data: [DONE]\n\n")).toBe(true);
	expect(wordsOf(answer?.body ?? "").join("") === words.join("")).toBe(true);
}

function expectWhole(answer: RawResponse | undefined): void {
	expect(JSON.parse(answer?.body ?? "").choices[0].message.content).toBe("whole");
}

/** Makes the server stream these words. Unstreamed requests get the answer `whole`. */
function say(words: readonly string[], gapMs = 0): void {
	upstream.decide(({ stream }) =>
		stream === true
			? reply()
					.text([...words])
					.trickle(gapMs)
			: reply().text("whole"),
	);
}

/** Resolves once the upstream server's output stops, because all buffers up to the stalled client are full. */
async function standsStill({ tokens }: SeenRequest): Promise<void> {
	let before = -1;
	for (let same = 0; same < 5; same = before === tokens.completion ? same + 1 : 0) {
		before = tokens.completion;
		await Bun.sleep(30);
	}
}

test.each([
	["no events", []],
	["one small event", ["a"]],
	["two thousand events", Array.from({ length: 2_000 }, (_, at) => ` w${at}`)],
	["small events between events of a megabyte", ["a", MB, "😀", MB, "z"]],
])("a connection delivers a stream of %s, then answers the next request", async (_, words) => {
	const { accountId, secret } = await service.customer();
	say(words, words.length < 10 ? 1 : 0);
	const client = await openRaw(service.url, streamed(secret));
	const ends = (count: number) => () => client.text().split("\n\n\r\n0\r\n\r\n").length > count;
	await waitFor(ends(1), "the end of the stream");
	client.write(rawPost(PATH, secret, ask()));
	await client.until('"whole"');
	await client.until('"system_fingerprint":null}');
	client.write(streamed(secret));
	await waitFor(ends(2), "the end of the second stream");
	client.write(rawPost(PATH, secret, ask(), CLOSE));
	const answers = answersIn(await client.ended());
	expect(answers).toHaveLength(4);
	expectWords(answers[0], words);
	expectWhole(answers[1]);
	expectWords(answers[2], words);
	expectWhole(answers[3]);
	await service.settled();
	expect((await service.usage(accountId)).map(({ ending }) => ending)).toEqual(Array(4).fill("finished"));
});

test("a stream whose client paused continues when the client reads again", async () => {
	const begin = async (count: number) => {
		const { accountId, secret } = await service.customer();
		const words = Array.from({ length: count }, (_, at) => `<${at}>${MB}`);
		say(words, 0.01);
		const nth = upstream.requests.length + 1;
		const client = await openRaw(service.url, streamed(secret));
		client.stall();
		const request = await upstream.waitForRequest(nth);
		await standsStill(request);
		return { accountId, secret, words, client, isStill: request.tokens.completion < count };
	};
	let begun = await begin(30);
	// The kernel's socket buffers can hold tens of megabytes. If a whole stream fits into them, a longer stream is sent.
	for (let count = 60; !begun.isStill && count <= 120; count *= 2) {
		begun.client.leave();
		begun = await begin(count);
	}
	const { accountId, secret, words, client } = begun;
	expect(begun.isStill).toBe(true);
	client.resume();
	await client.until("[DONE]\n\n\r\n0\r\n\r\n", 60_000);
	client.write(rawPost(PATH, secret, ask(), CLOSE));
	const answers = answersIn(await client.ended());
	expect(answers).toHaveLength(2);
	expectWords(answers[0], words);
	expectWhole(answers[1]);
	await service.settled();
	expect((await service.usage(accountId))[0]).toMatchObject({ ending: "finished", completion_tokens: words.length });
}, 150_000);

test.each([1, 2, 3])("a stream delivers event %i before the server sends the next event", async (nth) => {
	const { secret } = await service.customer();
	const go = Promise.withResolvers<void>();
	upstream.decide(() => reply().text(["x1x", "x2x", "x3x", "x4x"]).trickle(1).pauseAfter(nth, go.promise));
	const client = await openRaw(service.url, streamed(secret));
	// The server sends the next event only after the client has read this one.
	expect(await client.until(`x${nth}x`)).not.toContain(`x${nth + 1}x`);
	go.resolve();
	await client.until("[DONE]");
	client.leave();
});

test.each([{}, CLOSE])("a stream delivers a failure before or after its first event (headers %p)", async (headers) => {
	const { accountId, secret } = await service.customer();
	const isKept = !("connection" in headers);
	const two = () => reply().text(["a", "b"]).trickle(1);
	for (const [answer, status, ending, charged] of [
		[() => two().errorEvent(0), 502, "upstream_failed", 0],
		[() => two().errorEvent(1), 200, "upstream_failed", priceOf(PROMPT, 1)],
		[() => two().dieAfter(0), 502, "upstream_died", 0],
		[() => two().endAfter(1), 200, "upstream_died", priceOf(PROMPT, 1)],
	] as const) {
		upstream.decide(({ stream }) => (stream === true ? answer() : reply().text("whole")));
		const client = await openRaw(service.url, streamed(secret, headers));
		if (isKept) {
			await client.until(status === 200 ? "[DONE]\n\n\r\n0\r\n\r\n" : '"code":"upstream_error"}}');
			client.write(rawPost(PATH, secret, ask(), CLOSE));
		}
		const answers = answersIn(await client.ended());
		expect(answers).toHaveLength(isKept ? 2 : 1);
		expect(answers[0]?.status).toBe(status);
		expect(answers[0]?.body).toContain('"upstream_error"');
		if (isKept) expectWhole(answers[1]);
		await service.settled();
		const rows = (await service.usage(accountId)).filter((row) => row.ending !== "finished");
		expect(rows.at(-1)).toMatchObject({ ending, charged_nano_usd: String(charged) });
	}
});

test("a stream to an HTTP/1.0 client is not sent in chunks", async () => {
	const { accountId, secret } = await service.customer();
	say(["a", MB, "z"], 1);
	const client = await openRaw(service.url, streamed(secret).replace("HTTP/1.1", "HTTP/1.0"));
	const answer = parseRaw(await client.until("[DONE]\n\n"));
	expect(answer.headers.has("transfer-encoding")).toBe(false);
	expectWords(answer, ["a", MB, "z"]);
	client.leave();
	expect(await onlyUsage(service, accountId)).toMatchObject({ ending: "finished", completion_tokens: 3 });
});

test.each([0, 2])("a stream whose client closes half the connection ends as client_left (%i events)", async (count) => {
	const { accountId, secret } = await service.customer();
	upstream.decide(() => (count === 0 ? reply().hang() : reply().text("a b c").trickle(1).stallAfter(count)));
	const nth = upstream.requests.length + 1;
	const { hostname, port } = new URL(service.url);
	const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
	let text = "";
	socket.on("data", (bytes) => {
		text += bytes;
	});
	socket.write(streamed(secret));
	await upstream.waitForRequest(nth);
	await waitFor(() => count === 0 || text.includes('" b"'), "the events");
	socket.end();
	await upstream.waitForAbort(nth);
	const charged = count === 0 ? 0 : priceOf(PROMPT, count);
	expect(await onlyUsage(service, accountId)).toMatchObject({
		ending: "client_left",
		charged_nano_usd: String(charged),
	});
	socket.destroy();
});
