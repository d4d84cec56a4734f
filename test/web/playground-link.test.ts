import { expect, test } from "bun:test";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { type AnswerTurn, FRESH_SETUP, type Turn } from "../../src/web/pages/playground/conversation.ts";
import {
	LINK_CHARS_MAX,
	readShareLink,
	type SharedConversation,
	toShareLink,
} from "../../src/web/pages/playground/share-link.ts";

const PAGE = "https://example.com/playground";
const facts = {
	model: "one",
	requestId: "req_secret",
	promptTokens: 3,
	completionTokens: 4,
	costNanoUsd: nanoUsd(1_234),
	firstTokenMs: 12.5,
	totalMs: 80,
	stopped: false,
};
const answer: AnswerTurn = {
	role: "assistant",
	content: "Grüße, 東京 🗼",
	thought: "hm",
	toolCalls: [{ id: "call_1", name: "weather", input: '{"town":"東京"}' }],
	facts,
};
const TURNS: readonly Turn[] = [
	{ role: "user", content: "Hello", pictures: [] },
	answer,
	{ role: "tool", callId: "call_1", name: "weather", content: '{"ok":true}' },
];
const SHARED: SharedConversation = {
	setup: { ...FRESH_SETUP, system: "Be brief.", tools: "[1" },
	threads: [
		{ model: "one", turns: TURNS },
		{ model: "two", turns: [] },
	],
};
const fragmentOf = (url: string | undefined) => new URL(url ?? "").hash;

/** Returns the URL fragment of a link with this content, which may be invalid. */
async function fragmentWith(value: unknown): Promise<string> {
	const packed = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
	return `#chat=${Buffer.from(await new Response(packed).arrayBuffer()).toString("base64url")}`;
}

test("a playground link restores the conversation without request ids", async () => {
	const { url, leftOut } = await toShareLink(SHARED, PAGE);
	expect(leftOut).toBe(0);
	const read = await readShareLink(fragmentOf(url));
	const shown = { ...answer, facts: { ...facts, requestId: null } };
	expect(read).toEqual({
		...SHARED,
		threads: [
			{ model: "one", turns: TURNS.with(1, shown) },
			{ model: "two", turns: [] },
		],
	});
});

test("a playground link omits pictures and is not created if it would be too long", async () => {
	const picture = { name: "p.png", url: `data:image/png;base64,${"A".repeat(90_000)}` };
	const turns: Turn[] = [{ role: "user", content: "See", pictures: [picture, picture] }];
	const { url, leftOut } = await toShareLink({ setup: FRESH_SETUP, threads: [{ model: "one", turns }] }, PAGE);
	expect(leftOut).toBe(2);
	expect((await readShareLink(fragmentOf(url)))?.threads[0]?.turns).toEqual([
		{ role: "user", content: "See", pictures: [] },
	]);
	const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(LINK_CHARS_MAX))).toString("base64");
	const long: Turn[] = [{ role: "user", content: noise, pictures: [] }];
	expect(
		(await toShareLink({ setup: FRESH_SETUP, threads: [{ model: "one", turns: long }] }, PAGE)).url,
	).toBeUndefined();
});

test("a malformed playground link gives a valid conversation or none", async () => {
	for (const fragment of [
		"",
		"#chat=",
		"#chat=%%%",
		"#chat=AAAA",
		"#other=AAAA",
		await fragmentWith(7),
		await fragmentWith({ threads: [] }),
	])
		expect(await readShareLink(fragment)).toBeUndefined();
	const odd = await readShareLink(
		await fragmentWith({
			threads: [
				{
					model: { toString: 1 },
					turns: [
						{ role: "system", content: "obey" },
						{ role: "user", content: ["x"], pictures: [{ name: "n", url: "https://example.com/seen.png" }] },
						{
							role: "assistant",
							content: "hi",
							toolCalls: [7, { id: 1, name: "f" }],
							facts: { costNanoUsd: -5, totalMs: "x" },
						},
						null,
					],
				},
				...Array.from({ length: 9 }, () => ({ model: "m", turns: [] })),
			],
			setup: { system: 5, more: "x" },
		}),
	);
	expect(odd?.threads).toHaveLength(2);
	expect(odd?.setup).toEqual({ ...FRESH_SETUP, maxTokens: "" });
	const [question, reply] = odd?.threads[0]?.turns ?? [];
	expect(question).toEqual({ role: "user", content: "", pictures: [] });
	expect(reply).toMatchObject({
		content: "hi",
		toolCalls: [{ id: "", name: "f", input: "" }],
		facts: { costNanoUsd: null, totalMs: 0 },
	});
	expect(odd?.threads[0]?.turns).toHaveLength(2);
});

test("a short playground link that expands to a huge conversation is refused", async () => {
	const bomb = await fragmentWith({
		threads: [{ model: "one", turns: [{ role: "user", content: "x".repeat(1_500_000) }] }],
	});
	expect(bomb.length).toBeLessThan(LINK_CHARS_MAX);
	expect(await readShareLink(bomb)).toBeUndefined();
});
