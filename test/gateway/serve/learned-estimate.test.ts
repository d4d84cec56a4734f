import { expect, test } from "bun:test";
import { ask, onlyUsage } from "../../support/chat.ts";
import { chatEvent, streamReply, usageEvent } from "../../support/raw-answer.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";

const [upstream, other] = [withUpstream(), withUpstream()];
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${chatModel({ id: "another", url: other.url })}`,
	limits: "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});
const everyone = await service.customer();

const words = (count: number) => Array.from({ length: count }, () => chatEvent({ content: "barrage " }));

async function estimate(model = "test-model", more: object = {}): Promise<unknown> {
	const { accountId, secret } = await service.customer();
	(model === "another" ? other : upstream).next(streamReply([...words(6), chatEvent({}, "stop")]));
	await (await service.post("/v1/chat/completions", secret, ask("hi", { stream: true, model, ...more }))).text();
	const { basis, completion_tokens } = await onlyUsage(service, accountId);
	return { basis, completion_tokens };
}

async function finish(events: number, tokens: number, times: number): Promise<void> {
	for (let time = 0; time < times; time++) {
		upstream.next(streamReply([...words(events), chatEvent({}, "stop"), usageEvent(3, tokens)]));
		await (await service.post("/v1/chat/completions", everyone.secret, ask("hi", { stream: true }))).text();
	}
}

test("a model's token estimate is learned from the events of finished streams", async () => {
	expect(await estimate()).toEqual({ basis: "estimated", completion_tokens: 12 });
	await finish(40, 41, 3);
	expect(await estimate()).toEqual({ basis: "estimated", completion_tokens: 6 });
	// A model at another server keeps its own estimate.
	expect(await estimate("another")).toEqual({ basis: "estimated", completion_tokens: 12 });
});
