import { describe, expect, test } from "bun:test";
import { nanoUsd, parseUsd } from "../../../src/money/nano-usd.ts";
import { untilEnd } from "../../support/at-end.ts";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { startUpstream } from "../../support/upstream-server.ts";

const upstream = untilEnd(startUpstream());
const service = await withService({ models: chatModel({ url: upstream.url }) });

const AMOUNTS = ["available_usd", "held_usd", "required_usd"];
const post = (secret: string, body: unknown) => service.post("/v1/chat/completions", secret, body);

test("402 top_up_required: no confirmed top-up yet; the catalogue can be read all the same", async () => {
	const accountId = await service.account({ credit: null });
	const { secret } = await service.key(accountId);
	const { status, error, headers } = await errorOf(await post(secret, ask()));
	expect(status).toBe(402);
	expect(error).toMatchObject({ code: "top_up_required", type: "insufficient_quota", param: null });
	expect(headers.get("x-should-retry")).toBe("false");
	expect((await service.get("/v1/models", secret)).status).toBe(200);
	await expectUncharged(service, accountId);
});

describe("402 insufficient_quota", () => {
	test("says what is there, what it takes, and a `max_tokens` that passes exactly", async () => {
		const { accountId, secret } = await service.customer({ exactCredit: 1_000_000 });
		for (const stream of [false, true]) {
			const { status, error, headers } = await errorOf(await post(secret, ask("one two three", { stream })), [
				...AMOUNTS,
				"affordable_max_tokens",
			]);
			expect(status).toBe(402);
			expect(error).toMatchObject({
				code: "insufficient_quota",
				type: "insufficient_quota",
				available_usd: "0.001",
				held_usd: "0.00",
			});
			expect(headers.get("x-should-retry")).toBe("false");
			const affordable = error.affordable_max_tokens as number;
			expect(error.message).toContain(`up to USD ${error.required_usd}, available is USD ${error.available_usd}.`);
			expect(error.message).toContain(`\`max_tokens\` of ${affordable} would fit`);
			const above = await post(secret, ask("one two three", { stream, max_tokens: affordable + 1 }));
			expect(above.status).toBe(402);
			await above.text();
		}
		await expectUncharged(service, accountId);
		const { error } = await errorOf(await post(secret, ask()), [...AMOUNTS, "affordable_max_tokens"]);
		const fits = await post(secret, ask("one two three", { max_tokens: error.affordable_max_tokens }));
		expect(fits.status).toBe(200);
		await fits.text();
	});

	test("names no affordable output where the prompt alone is too dear", async () => {
		const { secret } = await service.customer({ exactCredit: 5_000 });
		const { error } = await errorOf(await post(secret, ask()), AMOUNTS);
		expect(error).toMatchObject({ code: "insufficient_quota", available_usd: "0.000005" });
		expect(parseUsd(error.required_usd as string) as number).toBeGreaterThan(5_000);
	});

	test("divides what is affordable by the number of choices", async () => {
		const { secret } = await service.customer({ exactCredit: 1_000_000 });
		const one = await errorOf(await post(secret, ask("hi", { n: 1 })), [...AMOUNTS, "affordable_max_tokens"]);
		const four = await errorOf(await post(secret, ask("hi", { n: 4 })), [...AMOUNTS, "affordable_max_tokens"]);
		expect(four.error.affordable_max_tokens).toBe(Math.floor((one.error.affordable_max_tokens as number) / 4));
	});
});

test("402 key_cap_exceeded: the key's own limit, though the account has plenty", async () => {
	const { accountId, secret } = await service.customer({ settings: { capNanoUsd: nanoUsd(1_000_000) } });
	const { status, error, headers } = await errorOf(await post(secret, ask()), [...AMOUNTS, "affordable_max_tokens"]);
	expect(status).toBe(402);
	expect(error).toMatchObject({ code: "key_cap_exceeded", type: "insufficient_quota", available_usd: "0.001" });
	expect(headers.get("x-should-retry")).toBe("false");
	await expectUncharged(service, accountId);
	expect(upstream.requests.length).toBeLessThanOrEqual(1);
});
