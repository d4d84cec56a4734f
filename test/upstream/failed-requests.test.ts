import { expect, test } from "bun:test";
import { Prompt } from "../../src/upstream/prompt.ts";
import { createFailedRequests } from "../../src/upstream/replicas/failed-requests.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const of = (content: string, more: object = {}) => ({ prompt: new Prompt([{ role: "user", content }]), ...more });

test("a request counts as repeated if its account sends it again within a minute", async () => {
	const clock = createManualClock();
	const { isRepeated } = createFailedRequests(clock);
	const failed = (request: object, accountId = "a") => isRepeated({ accountId, request });
	expect([await failed(of("x")), await failed(of("x")), await failed(of("x"))]).toEqual([false, true, true]);
	expect(await failed(of("y"))).toBe(false);
	expect(await failed(of("x"), "b")).toBe(false);
	expect(await failed(of("x", { fields: { top_p: 1 } }))).toBe(false);
	clock.advance(60_001);
	expect([await failed(of("x")), await failed(of("x"))]).toEqual([false, true]);
	const sent = of("long ".repeat(10_000));
	expect(await failed(of("long ".repeat(10_000)))).toBe(false);
	// Once sent, a long prompt is kept only as text. It must still count as the same request.
	sent.prompt.writtenInto({ model: "m" }, "messages");
	expect(await failed(sent)).toBe(true);
	for (const [bytes, isRepeated] of [
		["ab", false],
		["abc", false],
		["abd", false],
		["abc", true],
	] as const)
		expect([bytes, await failed({ file: new Blob([bytes]) })]).toEqual([bytes, isRepeated]);
});

test("the oldest failed request is forgotten once there are more than the limit", async () => {
	const { isRepeated } = createFailedRequests(createManualClock());
	const failed = (nth: number) => isRepeated({ accountId: "a", request: { nth } });
	for (let nth = 0; nth < 101; nth += 1) await failed(nth);
	expect([await failed(100), await failed(1), await failed(0)]).toEqual([true, true, false]);
});
