import { expect, test } from "bun:test";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { chatModel, withChat } from "../../support/service.ts";
import { reply } from "../../support/upstream-server.ts";

const { upstream, service } = await withChat({ dialect: "vllm" });

test("a request that runs during a price change is charged the earlier price", async () => {
	const before = await service.customer();
	upstream.next(reply().text("a b c d").trickle(100));
	const client = await service.openChat(before.secret, ask("one two three", { stream: true }));
	await client.until('"content":"a"');

	await service.serve(
		chatModel({ url: upstream.url, dialect: "vllm" })
			.replace('input: "1"', 'input: "10"')
			.replace('output: "2"', 'output: "20"'),
	);
	const after = await service.customer();
	upstream.next(reply().text("a b c d"));
	await (await service.chat(after.secret, ask())).text();

	await client.until("[DONE]");
	client.leave();
	const old = await onlyUsage(service, before.accountId);
	expect([Number(old.charged_nano_usd), old.rate_card_id]).toEqual([priceOf(6, 4), "test-model@1"]);
	const fresh = await onlyUsage(service, after.accountId);
	expect([Number(fresh.charged_nano_usd), fresh.rate_card_id]).toEqual([10 * priceOf(6, 4), "test-model@2"]);
	const entry = (await (await service.get("/v1/models/test-model", after.secret)).json()) as {
		pricing: Record<string, string>;
		rate_card: string;
	};
	expect(entry).toMatchObject({ pricing: { prompt: "0.00001", completion: "0.00002" }, rate_card: "test-model@2" });
});

test("a removed model finishes its running request and gives 404 to the next request", async () => {
	const { accountId, secret } = await service.customer();
	upstream.next(reply().text("a b c d").trickle(100));
	const client = await service.openChat(secret, ask("one two three", { stream: true }));
	await client.until('"content":"a"');
	await service.serve(chatModel({ id: "another-model", url: upstream.url, dialect: "vllm" }));
	const response = await service.chat(secret, ask());
	expect(response.status).toBe(404);
	await response.text();
	await client.until("[DONE]");
	client.leave();
	expect(await onlyUsage(service, accountId)).toMatchObject({ ending: "finished", completion_tokens: 4 });
});
