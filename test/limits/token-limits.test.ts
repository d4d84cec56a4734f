import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { updateAccount } from "../../src/keys/account-admin.ts";
import { ask } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";

const upstream = withUpstream();
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${chatModel({ id: "narrow-model", url: upstream.url })}\n    tokens_per_minute: 1000`,
	limits: "  accounts: [{ tag: large, tokens_per_minute: 4000 }]",
});

async function post(secret: string, body: unknown) {
	const response = await service.post("/v1/chat/completions", secret, body);
	const answer = (await response.json()) as {
		error?: { message: string; code: string };
		usage?: Record<string, number>;
	};
	const header = (name: string) => response.headers.get(`x-ratelimit-${name}-tokens`);
	const left = [header("limit"), header("remaining"), /^(0|[12]m\d+|\d+)s$/.test(header("reset") ?? "")];
	return { status: response.status, headers: response.headers, left, answer };
}

test("an answer has OpenAI's headers of the closest token limit after the request", async () => {
	const { secret, accountId } = await service.customer({ settings: { tokensPerMinute: 1_200 } });
	const first = await post(secret, ask("one two three", { max_tokens: 100 }));
	const used = first.answer.usage?.total_tokens as number;
	expect([first.status, ...first.left]).toEqual([200, "1200", String(1_200 - used), true]);
	const narrow = await post(secret, ask("one", { model: "narrow-model", max_tokens: 100 }));
	expect(narrow.left.slice(0, 2)).toEqual(["1000", String(1_000 - (narrow.answer.usage?.total_tokens as number))]);
	const tooLarge = await post(secret, ask("one"));
	expect([tooLarge.status, tooLarge.headers.get("x-should-retry"), tooLarge.headers.get("retry-after")]).toEqual([
		429,
		"false",
		null,
	]);
	expect(tooLarge.answer.error?.message).toStartWith(
		"This key is limited to 1200 tokens per minute, and this request may use up to ",
	);
	expect((await service.get("/v1/key", secret)).status).toBe(200);
	const free = await service.customer();
	expect((await post(free.secret, ask())).left).toEqual([null, null, false]);
	const entry = await updateAccount(service.db.statements, accountId, { tags: ["large"], tokensPerMinute: 500 });
	await waitForAllInstances({ liveness: service.db.liveness, clock: systemClock }, entry.entry as never, 20_000);
	expect((await post(secret, ask("one", { max_tokens: 50 }))).left[0]).toBe("500");
});
