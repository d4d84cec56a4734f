import { describe, expect, test } from "bun:test";
import { IDLE_TIMEOUT_S, UNREAD_TIMEOUT_S } from "../../../src/gateway/connection.ts";
import type { AnswerReader } from "../../../src/gateway/serve/unread-answers.ts";
import { codeThrownBy } from "../../support/code-of.ts";
import { unreadAnswersAlone } from "../../support/unread-answers.ts";

const MB = 1024 * 1024;
const limits = { answerMemoryAccountBytesMax: 3 * MB, answerMemoryBytesMax: 5 * MB };
const body = (bytes = 2 * MB) => new Uint8Array(bytes).fill(120);

const timeouts: number[] = [];
const readerOf = (accountId: string, signal = new AbortController().signal): AnswerReader => ({
	accountId,
	connection: {
		request: new Request("http://test.example/", { signal }),
		address: "",
		setIdleTimeout: (seconds) => void timeouts.push(seconds),
	},
});

describe("a long answer that is not streamed", () => {
	const ENDS: Readonly<Record<string, (answer: Response, leave: AbortController) => Promise<unknown> | unknown>> = {
		"is read": async (answer) => expect(await answer.bytes()).toEqual(body()),
		"is cancelled": (answer) => answer.body?.cancel(),
		"has no reader any more": (_, leave) => leave.abort(),
	};
	test.each(Object.entries(ENDS))("counts as unread until its client %s", async (_, end) => {
		const unread = unreadAnswersAlone(limits);
		const leave = new AbortController();
		const answer = new Response(unread.passedBytes(body(), readerOf("a", leave.signal)));
		expect([unread.bytes(), timeouts.at(-1)]).toEqual([2 * MB, UNREAD_TIMEOUT_S]);
		await end(answer, leave);
		expect([unread.bytes(), timeouts.at(-1)]).toEqual([0, IDLE_TIMEOUT_S]);
		leave.abort();
		expect(unread.bytes()).toBe(0);
	});

	test("does not count as unread if its client has already disconnected", () => {
		const unread = unreadAnswersAlone(limits);
		unread.passedBytes(body(), readerOf("a", AbortSignal.abort()));
		expect(unread.bytes()).toBe(0);
	});

	test("counts as unread until its connection breaks off", async () => {
		const unread = unreadAnswersAlone(limits);
		const broken = new ReadableStream<string>({ pull: (controller) => controller.error(new Error("broken")) });
		const answer = new Response(unread.passed(broken, MB, readerOf("a")));
		expect(unread.bytes()).toBe(MB);
		expect(answer.text()).rejects.toThrow("broken");
		await answer.text().catch(() => {});
		expect(unread.bytes()).toBe(0);
	});
});

test("never counts as unread if it is short", () => {
	const unread = unreadAnswersAlone(limits);
	const short = body(128 * 1024);
	expect(unread.passedBytes(short, readerOf("a"))).toBe(short);
	expect(unread.bytes()).toBe(0);
});

test("the gateway refuses an account with too much unread data", () => {
	const unread = unreadAnswersAlone(limits);
	const codes = () => ["a", "b", "c"].map((accountId) => codeThrownBy(() => unread.check(accountId)));
	unread.passedBytes(body(), readerOf("a"));
	expect(codes()).toEqual(["none", "none", "none"]);
	unread.passedBytes(body(), readerOf("a"));
	expect(codes()).toEqual(["rate_limit_exceeded", "none", "none"]);
	unread.passedBytes(body(), readerOf("b"));
	expect(codes()).toEqual(["rate_limit_exceeded", "overloaded", "none"]);
});
