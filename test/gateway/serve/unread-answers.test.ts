import { describe, expect, test } from "bun:test";
import { Fault } from "../../../src/base/fault.ts";
import { createUnreadAnswers } from "../../../src/gateway/serve/unread-answers.ts";

const MB = 1024 * 1024;
const limits = { answerMemoryAccountBytesMax: 3 * MB, answerMemoryBytesMax: 5 * MB };
const body = (bytes = 2 * MB) => new Uint8Array(bytes).fill(120);

function codeOf(check: () => void): string {
	try {
		check();
		return "none";
	} catch (error) {
		expect(error).toBeInstanceOf(Fault);
		return (error as Fault).code;
	}
}

describe("an answer that is long", () => {
	const ENDS: Readonly<Record<string, (answer: Response, leave: AbortController) => Promise<unknown> | unknown>> = {
		"is read": async (answer) => expect(await answer.bytes()).toEqual(body()),
		"is let go": (answer) => answer.body?.cancel(),
		"has nobody any more who would read it": (_, leave) => leave.abort(),
	};
	test.each(Object.entries(ENDS))("counts until it %s", async (_, end) => {
		const unread = createUnreadAnswers({ limits: () => limits });
		const leave = new AbortController();
		const answer = new Response(unread.passedBytes(body(), { accountId: "a", signal: leave.signal }));
		expect(unread.bytes()).toBe(2 * MB);
		await end(answer, leave);
		expect(unread.bytes()).toBe(0);
		leave.abort();
		expect(unread.bytes()).toBe(0);
	});

	test("for a client that has left before counts nothing", () => {
		const unread = createUnreadAnswers({ limits: () => limits });
		unread.passedBytes(body(), { accountId: "a", signal: AbortSignal.abort() });
		expect(unread.bytes()).toBe(0);
	});

	test("that breaks off counts until then, and says so", async () => {
		const unread = createUnreadAnswers({ limits: () => limits });
		const broken = new ReadableStream<string>({ pull: (controller) => controller.error(new Error("broken")) });
		const answer = new Response(unread.passed(broken, MB, { accountId: "a", signal: new AbortController().signal }));
		expect(unread.bytes()).toBe(MB);
		expect(answer.text()).rejects.toThrow("broken");
		await answer.text().catch(() => {});
		expect(unread.bytes()).toBe(0);
	});
});

test("an answer that is short is sent as it is, and not counted", () => {
	const unread = createUnreadAnswers({ limits: () => limits });
	const short = body(128 * 1024);
	expect(unread.passedBytes(short, { accountId: "a", signal: new AbortController().signal })).toBe(short);
	expect(unread.bytes()).toBe(0);
});

test("who has left more than his share unread is refused, and everybody once all have left too much", () => {
	const unread = createUnreadAnswers({ limits: () => limits });
	const { signal } = new AbortController();
	const codes = () => ["a", "b", "c"].map((accountId) => codeOf(() => unread.check(accountId)));
	unread.passedBytes(body(), { accountId: "a", signal });
	expect(codes()).toEqual(["none", "none", "none"]);
	unread.passedBytes(body(), { accountId: "a", signal });
	expect(codes()).toEqual(["rate_limit_exceeded", "none", "none"]);
	unread.passedBytes(body(), { accountId: "b", signal });
	expect(codes()).toEqual(["rate_limit_exceeded", "overloaded", "overloaded"]);
});
