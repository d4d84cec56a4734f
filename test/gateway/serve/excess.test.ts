/** A server that counts more than it was allowed to, and what of it is paid. */
import { expect, test } from "bun:test";
import { untilEnd } from "../../support/at-end.ts";
import { ask, onlyUsage } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, startUpstream } from "../../support/upstream-server.ts";

const vllm = untilEnd(startUpstream({ dialect: "vllm" }));
const service = await withService({ models: chatModel({ url: vllm.url, dialect: "vllm" }) });
/** USD 1 a million tokens of prompt, 2 of output, in nano-dollars a token. */
const COST = 6 * 1_000 + 8_000 * 2_000;

async function answered(secret: string): Promise<void> {
	vllm.next(reply().text("a").usage({ prompt: 6, completion: 8_000 }));
	const response = await service.post("/v1/chat/completions", secret, ask("hi", { max_tokens: 1 }));
	expect(response.status).toBe(200);
	await response.text();
}

test("an excess is covered from credit that Postgres still has, not only from what lies here", async () => {
	const { secret, accountId } = await service.customer();
	await answered(secret);
	const row = await onlyUsage(service, accountId);
	expect(Number(row.charged_nano_usd)).toBe(COST);
	expect(Number(row.written_off_nano_usd)).toBe(0);
});

test("what nobody has is written off, and all that there is was taken before", async () => {
	const credit = 12_000_000;
	const { secret, accountId } = await service.customer({ exactCredit: credit });
	await answered(secret);
	const row = await onlyUsage(service, accountId);
	expect(Number(row.charged_nano_usd)).toBe(credit);
	expect(Number(row.written_off_nano_usd)).toBe(COST - credit);
	expect(await service.balance(accountId)).toMatchObject({ balance: 0 });
});

test("a cap of the key bounds what is covered, whatever the account has", async () => {
	const { secret, accountId } = await service.customer({ settings: { capNanoUsd: 9_000_000 as never } });
	await answered(secret);
	const row = await onlyUsage(service, accountId);
	expect(Number(row.charged_nano_usd)).toBe(9_000_000);
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});
