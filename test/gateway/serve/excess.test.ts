/** What is charged when a server counts more tokens than the request has reserved. */
import { expect, test } from "bun:test";
import { ask, onlyUsage } from "../../support/chat.ts";
import { openRaw, rawPost } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const vllm = withUpstream("vllm");
const service = await withService({ models: chatModel({ url: vllm.url, dialect: "vllm" }) });
/** The actual cost in nano-dollars: 6 prompt tokens at 1,000 and 8,000 output tokens at 2,000. */
const COST = 6 * 1_000 + 8_000 * 2_000;

/** A stream that reports 8,000 tokens in each of its events. */
const counting = () =>
	reply()
		.text("a b c d")
		.lie({ top: { usage: { prompt_tokens: 6, completion_tokens: 8_000, total_tokens: 8_006 } } });
const streamed = (secret: string) =>
	rawPost("/v1/chat/completions", secret, ask("hi", { max_tokens: 1, stream: true }));

type How = "whole" | "finished" | "upstream_died" | "client_left";
const HOWS: How[] = ["whole", "finished", "upstream_died", "client_left"];

async function answered(secret: string, how: How = "whole"): Promise<void> {
	if (how === "whole") {
		vllm.next(reply().text("a").usage({ prompt: 6, completion: 8_000 }));
		const response = await service.chat(secret, ask("hi", { max_tokens: 1 }));
		expect(response.status).toBe(200);
		await response.text();
		return;
	}
	vllm.next(
		how === "finished" ? counting() : how === "upstream_died" ? counting().dieAfter(2) : counting().stallAfter(2),
	);
	const client = await openRaw(service.url, streamed(secret));
	if (how === "client_left") {
		await client.until('" b"');
		client.leave();
	} else await client.until("[DONE]");
}

test.each(HOWS)("a cost above the reservation is charged if the remaining credit covers it (%s)", async (how) => {
	const { secret, accountId } = await service.customer();
	await answered(secret, how);
	const row = await onlyUsage(service, accountId);
	expect(row.ending).toBe(how === "whole" ? "finished" : how);
	expect(Number(row.charged_nano_usd)).toBe(COST);
	expect(Number(row.written_off_nano_usd)).toBe(0);
});

test.each(HOWS)("a cost above the reservation is written off if no credit is left (%s)", async (how) => {
	const credit = 12_000_000;
	const { secret, accountId } = await service.customer({ exactCredit: credit });
	await answered(secret, how);
	const row = await onlyUsage(service, accountId);
	expect(Number(row.charged_nano_usd)).toBe(credit);
	expect(Number(row.written_off_nano_usd)).toBe(COST - credit);
	expect(await service.balance(accountId)).toMatchObject({ balance: 0 });
});

/** Ends a stream while the account's credit row is locked, so that charging the excess must wait. Then runs `work`. */
async function whileHeld(
	{ secret, accountId }: { secret: string; accountId: string },
	work: (client: Awaited<ReturnType<typeof openRaw>>) => Promise<unknown>,
): Promise<void> {
	const gate = Promise.withResolvers<void>();
	vllm.next(counting().pauseAfter(2, gate.promise));
	const client = await openRaw(service.url, streamed(secret));
	await client.until('" b"');
	await service.db.sql.begin(async (transaction) => {
		await transaction`select 1 from budget where id = ${accountId} for update`;
		gate.resolve();
		await client.until('" d"');
		await waitFor(() => vllm.open() === 0, "the upstream to have said all");
		expect(client.text()).not.toContain("[DONE]");
		expect(await service.usage(accountId)).toEqual([]);
		await work(client);
	});
}

test("a cost above the reservation is charged once if the client leaves", async () => {
	const [leaver, stayer] = [await service.customer(), await service.customer()];
	await whileHeld(leaver, async (client) => client.leave());
	let last: Promise<string> | undefined;
	await whileHeld(stayer, async (client) => {
		last = client.until("[DONE]");
	});
	await last;
	for (const { accountId } of [leaver, stayer]) {
		const row = await onlyUsage(service, accountId);
		expect([Number(row.charged_nano_usd), row.ending, row.status]).toEqual([COST, "finished", 200]);
	}
});

test("a cost above the reservation is charged up to the key's cap", async () => {
	const { secret, accountId } = await service.customer({ settings: { capNanoUsd: 9_000_000 as never } });
	await answered(secret);
	const row = await onlyUsage(service, accountId);
	expect(Number(row.charged_nano_usd)).toBe(9_000_000);
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});

test("a request that is drawing more credit is settled at once when its gateway stops", async () => {
	const customer = await service.customer();
	const { accountId } = customer;
	await whileHeld(customer, (client) => Promise.race([service.app.stop(), client.until("[DONE]")]));
	await service.app.stop();
	const rows = await service.usage(accountId);
	expect(rows.map(({ ending }) => ending)).toEqual(["finished"]);
	expect(Number(rows[0]?.charged_nano_usd) + Number(rows[0]?.written_off_nano_usd)).toBe(COST);
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});
