/**
 * For any usage that a server reports, the client sees the cost that is charged, and no more than the possible usage is
 * charged.
 */
import { expect, test } from "bun:test";
import { formatUsd, nanoUsd } from "../../../src/money/nano-usd.ts";
import { deploymentsYaml, TARGETS, type Target, usageInAnswer } from "../../fuzz/targets.ts";
import { withService } from "../../support/service.ts";
import { withEndpoints } from "../../support/upstream-endpoints.ts";

const upstream = withEndpoints("openai");
const service = await withService({ models: deploymentsYaml(upstream.url), limits: "  breaker_failures_in_row: 1000" });

const VALUES = [-5, 0, 7, 1.5, 1e12, 2 ** 31 - 1, 2 ** 31, 2 ** 53, 1e308, "12", "many", null, true, [], {}];
const record = (value: unknown, other: unknown, total: unknown) => ({
	type: "tokens",
	prompt_tokens: value,
	completion_tokens: other,
	input_tokens: value,
	output_tokens: other,
	total_tokens: total,
	seconds: other,
	prompt_tokens_details: { cached_tokens: total },
	completion_tokens_details: { reasoning_tokens: value },
	reasoning_tokens: other,
});
const RECORDS: readonly unknown[] = [
	undefined,
	null,
	"text",
	7,
	[],
	{},
	...VALUES.map((value) => record(value, value, value)),
	// Contradictory records: cached tokens exceed the prompt, or the total differs from the sum.
	record(7, 2 ** 31 - 1, 3),
	record(2 ** 31 - 1, 1, 1),
	record(7, -1, 2 ** 31 - 1),
	record(undefined, 3, 2 ** 31 - 1),
	record(1, 1, 1e300),
];
const CONTEXT = 4096;
/** The most that a chat can cost: its prompt, and two choices that each fill the context. */
const POSSIBLE_NANO_USD = CONTEXT * 1_000 + 2 * CONTEXT * 2_000 + 1_000;

const send = ({ path, request }: Target, secret: string) => service.post(path, secret, request());

/** A customer with much unreserved credit in memory, to which the gateway could wrongly charge an excess. */
async function richCustomer() {
	const customer = await service.customer();
	const input = Array.from({ length: 200 }, () => "x".repeat(CONTEXT));
	const { status } = await service.post("/v1/embeddings", customer.secret, { model: "embedding", input });
	expect(status).toBe(200);
	return customer;
}

async function answered(target: Target, secret: string, usage: unknown) {
	const { body, contentType } = target.answer(usage);
	upstream.next(() => new Response(body, { headers: { "content-type": contentType } }));
	const response = await send(target, secret);
	const text = await response.text();
	return {
		status: response.status,
		id: response.headers.get("x-request-id") as string,
		text,
		told: response.status === 200 ? usageInAnswer(text) : undefined,
	};
}

test.each(TARGETS.map((target) => [target.name, target] as const))(
	"impossible usage of %s has the same cost in answer, look-up and books",
	async (_, target) => {
		const { accountId, secret } = await richCustomer();
		const answers = [];
		for (const usage of RECORDS) answers.push(await answered(target, secret, usage));
		await service.settled();
		const rows = new Map((await service.usage(accountId)).map((row) => [String(row.request_id), row]));
		expect(rows.size).toBe(RECORDS.length + 1);
		const reserved = Math.min(...[...rows.values()].map((row) => Number(row.reserved_nano_usd)));
		let sum = Number([...rows.values()][0]?.charged_nano_usd);
		for (const [at, { status, id, text, told }] of answers.entries()) {
			expect([RECORDS[at], status]).toEqual([RECORDS[at], 200]);
			const row = rows.get(id.replace(/^req_(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"));
			const charged = Number(row?.charged_nano_usd);
			sum += charged;
			expect(charged).toBeLessThanOrEqual(target.mayExceed ? POSSIBLE_NANO_USD : reserved);
			expect([text, told?.cost]).toEqual([text, charged / 1e9]);
			expect(told?.basis).toBe(row?.basis);
			const looked = (await (await service.get(`/v1/usage/${id}`, secret)).json()) as Record<string, unknown>;
			expect(looked.cost_usd).toBe(formatUsd(nanoUsd(charged)));
			const counts = looked.usage as Record<string, unknown>;
			expect(counts).toMatchObject({
				prompt_tokens: told?.prompt_tokens ?? told?.input_tokens ?? row?.prompt_tokens,
				completion_tokens: told?.completion_tokens ?? told?.output_tokens ?? row?.completion_tokens,
			});
		}
		expect(Number((await service.balance(accountId)).spent)).toBe(sum);
		expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	},
);

test("the cost in an answer excludes the amount that the credit does not cover", async () => {
	for (const target of TARGETS.filter(({ mayExceed }) => mayExceed)) {
		const { accountId: probe, secret: probing } = await service.customer();
		await answered(target, probing, undefined);
		await service.settled();
		const reserved = Number((await service.usage(probe))[0]?.reserved_nano_usd);
		const { accountId, secret } = await service.customer({ exactCredit: reserved + 5 });
		const { told } = await answered(target, secret, record(CONTEXT, CONTEXT, 2 * CONTEXT));
		await service.settled();
		const [row] = await service.usage(accountId);
		const charged = Number(row?.charged_nano_usd);
		expect(charged).toBeLessThanOrEqual(reserved + 5);
		expect(told?.cost).toBe(charged / 1e9);
	}
});
