import { describe, expect, test } from "bun:test";
import { readChatRequest } from "../../src/gateway/chat/chat-request.ts";
import { parseSecret } from "../../src/keys/secret.ts";
import { createSseReader } from "../../src/upstream/call/sse-reader.ts";
import { createChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { readChatReply } from "../../src/upstream/chat/chat-whole.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { createFixtures, SEED, STREAM_TOKENS } from "./fixtures.ts";

const fixtures = createFixtures();

describe("fixtures of the benches", () => {
	test("the same seed makes the same bytes, another seed others", () => {
		expect(JSON.stringify(createFixtures(SEED).settled)).toBe(JSON.stringify(fixtures.settled));
		expect(createFixtures(SEED).secrets).toEqual(fixtures.secrets);
		expect(createFixtures(SEED + 1).secrets).not.toEqual(fixtures.secrets);
	});

	test("the secrets are ones that the service would take, all different", () => {
		for (const secret of fixtures.secrets) expect(parseSecret(secret, "service")).toBe(secret);
		expect(new Set(fixtures.digests).size).toBe(fixtures.secrets.length);
	});

	test("the bodies are chat requests of the sizes that they are named after", () => {
		const { small, kb100, mb1 } = fixtures.bodies;
		for (const body of [small, kb100, mb1]) {
			expect(readChatRequest(JSON.parse(body), fixtures.model).outputTokensMax).toBe(128);
		}
		expect(small.length).toBeLessThan(1_000);
		expect(kb100.length).toBeWithin(100_000, 110_000);
		expect(mb1.length).toBeWithin(1_000_000, 1_100_000);
	});

	test("the pieces of the stream are its payloads, cut elsewhere than at their ends", () => {
		const reader = createSseReader();
		const payloads = fixtures.pieces.flatMap((piece) => reader.push(piece));
		expect([...payloads, ...reader.end()]).toEqual([...fixtures.payloads]);
		expect(fixtures.pieces.some((piece) => piece.at(-1) !== 10)).toBe(true);
	});

	test("the stream is a whole answer with its usage", () => {
		const reader = createChatReader(DIALECTS.openai);
		const chunks = fixtures.payloads.map((payload) => reader.accept(payload)).filter((chunk) => chunk !== undefined);
		expect(chunks.length).toBeGreaterThanOrEqual(STREAM_TOKENS);
		expect(reader.ended()).toBe(true);
		expect(reader.usage()?.completionTokens).toBe(STREAM_TOKENS);
	});

	test("the answer is one that the gateway passes on", () => {
		const reply = readChatReply(JSON.parse(fixtures.answer), DIALECTS.openai);
		expect(reply.usage?.completionTokens).toBe(60);
		expect(fixtures.answer.length).toBeWithin(500, 700);
	});
});
