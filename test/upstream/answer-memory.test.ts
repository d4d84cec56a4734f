import { describe, expect, test } from "bun:test";
import { nextTurn } from "../../src/base/time-slice.ts";
import { createAnswerMemory } from "../../src/upstream/call/answer-memory.ts";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const MB = 1024 * 1024;
const limits = { answerMemoryBytesMax: 64 * MB, answerMemoryAccountBytesMax: 16 * MB };
const NEVER = new AbortController().signal;

function setUp() {
	const clock = createManualClock();
	let collections = 0;
	const collect = () => {
		collections += 1;
	};
	const memory = createAnswerMemory({ clock, collect }, { limits: () => limits });
	/** Starts an answer and reserves `mb` of memory for it. `seen.state` is the outcome. */
	function ask(accountId: string, mb: number, { signal = NEVER, isPatient = false } = {}) {
		const answer = memory.read(accountId);
		const seen = { state: "read" as string, more: (more: number) => take(more), release: () => answer.release() };
		function take(more: number): void {
			const room = answer.take(more * MB, signal, isPatient);
			if (room === undefined) return;
			seen.state = "waits";
			room.then(
				() => {
					seen.state = "read";
				},
				(error) => {
					seen.state = error instanceof UpstreamFailure ? error.kind : "left";
				},
			);
		}
		take(mb);
		return seen;
	}
	return { clock, memory, ask, collections: () => collections };
}

describe("long answers", () => {
	test("wait while other answers use up the memory for reading", async () => {
		const { ask } = setUp();
		const [first, second, third] = [ask("a", 5), ask("b", 4), ask("c", 4)];
		expect([first.state, second.state, third.state]).toEqual(["read", "waits", "waits"]);
		first.release();
		await nextTurn();
		expect([second.state, third.state]).toEqual(["read", "read"]);
	});

	test("that began earliest are read without waiting", () => {
		const { ask } = setUp();
		const [first, second] = [ask("a", 4), ask("b", 4)];
		second.more(4);
		first.more(20);
		expect([first.state, second.state]).toEqual(["read", "waits"]);
	});

	test("wait until clients have read enough bytes of other answers", async () => {
		const { memory, ask } = setUp();
		memory.addUnread("a", 33 * MB);
		const own = ask("a", 4);
		const other = ask("b", 4);
		expect([own.state, other.state]).toEqual(["waits", "read"]);
		memory.addUnread("a", -33 * MB);
		await nextTurn();
		expect(own.state).toBe("read");
		other.release();
		own.release();
		memory.addUnread("c", 62 * MB);
		expect(ask("b", 4).state).toBe("waits");
	});

	test("fail as `crowded` if no memory becomes free, while batch lines wait longer", async () => {
		const { clock, memory, ask } = setUp();
		memory.addUnread("a", 33 * MB);
		const [one, line] = [ask("a", 4), ask("a", 4, { isPatient: true })];
		const other = ask("b", 1);
		clock.advance(9_000);
		other.release();
		clock.advance(9_000);
		await nextTurn();
		expect(one.state).toBe("waits");
		clock.advance(1_000);
		await nextTurn();
		expect([one.state, line.state]).toEqual(["crowded", "waits"]);
	});

	test("stop waiting for memory when the client leaves", async () => {
		const { memory, ask } = setUp();
		const leaving = new AbortController();
		memory.addUnread("a", 33 * MB);
		const one = ask("a", 4, { signal: leaving.signal });
		leaving.abort();
		await nextTurn();
		expect(one.state).toBe("left");
	});

	test("fail immediately if they can never fit into the memory for answers", () => {
		const { ask } = setUp();
		const one = ask("a", 20);
		expect(() => one.more(20)).toThrow(UpstreamFailure);
	});
});

test("the gateway collects garbage after enough released bytes", async () => {
	const { ask, memory, collections } = setUp();
	ask("a", 7).release();
	await nextTurn();
	expect(collections()).toBe(0);
	memory.addUnread("a", MB);
	memory.addUnread("a", -MB);
	await nextTurn();
	expect(collections()).toBe(1);
});
