import { expect, test } from "bun:test";
import { Prompt } from "../../src/upstream/prompt.ts";
import { createFailedRequests } from "../../src/upstream/replicas/failed-requests.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const of = (content: string, more: object = {}) => ({ prompt: new Prompt([{ role: "user", content }]), ...more });

test("a request is repeated if its account sends the same within a minute", () => {
	const clock = createManualClock();
	const { isRepeated } = createFailedRequests(clock);
	const failed = (request: object, accountId = "a") => isRepeated({ accountId, request });
	expect([failed(of("x")), failed(of("x")), failed(of("x"))]).toEqual([false, true, true]);
	expect([failed(of("y")), failed(of("x"), "b"), failed(of("x", { fields: { top_p: 1 } }))]).toEqual([
		false,
		false,
		false,
	]);
	clock.advance(60_001);
	expect([failed(of("x")), failed(of("x"))]).toEqual([false, true]);
	const sent = of("long ".repeat(10_000));
	expect(failed(of("long ".repeat(10_000)))).toBe(false);
	// Once sent, a long prompt is kept as text; it still counts as the same request.
	sent.prompt.writtenInto({ model: "m" }, "messages");
	expect(failed(sent)).toBe(true);
	expect([failed({ file: new Blob(["ab"]) }), failed({ file: new Blob(["abc"]) })]).toEqual([false, false]);
});

test("the oldest of too many failures is forgotten", () => {
	const { isRepeated } = createFailedRequests(createManualClock());
	for (let nth = 0; nth < 101; nth += 1) isRepeated({ accountId: "a", request: { nth } });
	expect([100, 1, 0].map((nth) => isRepeated({ accountId: "a", request: { nth } }))).toEqual([true, true, false]);
});
