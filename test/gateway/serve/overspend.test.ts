import { describe, expect, test } from "bun:test";
import { createProject, getProject } from "../../../src/keys/project-admin.ts";
import { nanoUsd, parseUsd } from "../../../src/money/nano-usd.ts";
import { ask, priceOf } from "../../support/chat.ts";
import { LONG } from "../../support/long-form.ts";
import { tinyModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

/** Of many concurrent requests on credit for 50, exactly 50 are admitted, and not a nano-dollar more is spent. */
const AT_ONCE = LONG ? 400 : 160;

const OUTPUT = 8;
/** Prompt tokens: as many as fit into the context, so that the reservation cannot exceed the cost. */
const PROMPT = 16;
const QUESTION = "one two three";
const more = { max_tokens: OUTPUT };
const COST = priceOf(PROMPT, OUTPUT);
const post = (secret: string, extra: Record<string, unknown> = {}) =>
	service.chat(secret, ask(QUESTION, { ...more, ...extra }));

const upstream = withUpstream("vllm");
upstream.always(() => reply().text("a b c d e f g h").usage({ prompt: PROMPT, completion: OUTPUT }));
const service = await withService({ models: tinyModel(upstream.url) });
const { secret } = await service.customer({ exactCredit: 1 });
const refusal = (await (await post(secret)).json()) as { error: { required_usd: string } };
const bound = parseUsd(refusal.error.required_usd) as number;

/** Sends requests concurrently; returns their statuses and errors. */
async function flood(secret: string, extra: Record<string, unknown> = {}) {
	const before = upstream.requests.length;
	const answers = await Promise.all(
		Array.from({ length: AT_ONCE }, async () => {
			const response = await post(secret, extra);
			return { status: response.status, text: await response.text() };
		}),
	);
	const refused = answers
		.filter(({ status }) => status === 402)
		.map(({ text }) => (JSON.parse(text) as { error: Record<string, unknown> }).error);
	const passed = answers.filter(({ status }) => status === 200);
	expect(passed.length + refused.length).toBe(AT_ONCE);
	expect(upstream.requests.length - before).toBe(passed.length);
	const counted = upstream.requests
		.slice(before)
		.reduce((sum, { tokens }) => sum + priceOf(tokens.prompt, tokens.completion), 0);
	return { passed: passed.length, refused, counted };
}

async function booksOf(accountId: string) {
	await service.settled();
	const rows = await service.usage(accountId);
	const balance = await service.balance(accountId);
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	return {
		rows,
		charged: rows.reduce((sum, row) => sum + Number(row.charged_nano_usd), 0),
		spent: Number(balance.spent),
		available: Number(balance.available),
		held: Number(balance.held),
	};
}

test("the amount reserved for each request in this file equals its cost", () => {
	expect(bound).toBe(COST);
});

describe(`${AT_ONCE} concurrent requests`, () => {
	for (const stream of [false, true])
		test(`are served exactly 50 times if the credit is for 50, ${stream ? "streamed" : "whole"}`, async () => {
			const { accountId, secret } = await service.customer({ exactCredit: 50 * bound });
			const { passed, refused, counted } = await flood(secret, { stream });
			expect(passed).toBe(50);
			for (const error of refused) {
				expect(error.code).toBe("insufficient_quota");
				expect(parseUsd(error.available_usd as string) as number).toBeLessThan(bound);
			}
			const books = await booksOf(accountId);
			expect(books.rows).toHaveLength(50);
			expect(books.charged).toBe(counted);
			expect(books).toMatchObject({ charged: 50 * bound, spent: 50 * bound, available: 0, held: 0 });
		});

	test("are served exactly 50 times if a key's cap is for 50", async () => {
		const { accountId, secret } = await service.customer({ settings: { capNanoUsd: nanoUsd(50 * bound) } });
		const { passed, refused, counted } = await flood(secret);
		expect(passed).toBe(50);
		expect(refused.every(({ code }) => code === "key_cap_exceeded")).toBe(true);
		const books = await booksOf(accountId);
		expect([books.charged, books.spent]).toEqual([counted, 50 * bound]);
	});

	test("are served exactly 50 times over all keys of a project with a cap for 50", async () => {
		const accountId = await service.account();
		const cap = { name: "p", capNanoUsd: nanoUsd(50 * bound) };
		const { id: projectId } = await createProject(service.db.statements, accountId, cap);
		const keys = await Promise.all(
			[null, nanoUsd(10 * bound), null].map((capNanoUsd) => service.key(accountId, { capNanoUsd, projectId })),
		);
		const beside = await service.key(accountId);
		const answers = await Promise.all(
			Array.from({ length: AT_ONCE + 1 }, async (_, at) => {
				const response = await post(at === AT_ONCE ? beside.secret : (keys[at % 3]?.secret as string));
				return { status: response.status, at, text: await response.text() };
			}),
		);
		const passed = answers.filter(({ status }) => status === 200);
		expect(passed).toHaveLength(51);
		expect(passed.filter(({ at }) => at < AT_ONCE && at % 3 === 1).length).toBeLessThanOrEqual(10);
		const codes = answers.flatMap(({ status, text }) => (status === 200 ? [] : [JSON.parse(text).error.code]));
		expect(codes).toContain("project_cap_exceeded");
		expect(new Set(codes).difference(new Set(["project_cap_exceeded", "key_cap_exceeded"])).size).toBe(0);
		const books = await booksOf(accountId);
		expect(books.charged).toBe(51 * bound);
		expect(books.rows.filter(({ project_id }) => project_id === projectId)).toHaveLength(50);
		const project = await getProject(service.db.statements, { id: projectId });
		expect([project.capSpentNanoUsd as number, project.spentNanoUsd as number]).toEqual([50 * bound, 50 * bound]);
	});

	test("of two keys share the credit of the keys' account", async () => {
		const { accountId, secret } = await service.customer({ exactCredit: 50 * bound });
		const other = await service.key(accountId, { capNanoUsd: nanoUsd(20 * bound) });
		const statuses = await Promise.all(
			Array.from({ length: AT_ONCE }, async (_, at) => {
				const response = await post(at % 2 === 0 ? secret : other.secret);
				await response.text();
				return response.status;
			}),
		);
		expect(statuses.filter((status) => status === 200)).toHaveLength(50);
		expect(statuses.filter((status) => status === 402)).toHaveLength(AT_ONCE - 50);
		const books = await booksOf(accountId);
		expect(books).toMatchObject({ charged: 50 * bound, available: 0, held: 0 });
	});
});

test("cheaper requests use up the credit to the last affordable one", async () => {
	upstream.always(() => reply().text("a b").usage({ prompt: PROMPT, completion: 2 }));
	const { accountId, secret } = await service.customer({ exactCredit: 20 * bound });
	let passed = 0;
	for (;;) {
		const response = await post(secret);
		const text = await response.text();
		if (response.status === 402) {
			const { error } = JSON.parse(text) as { error: Record<string, unknown> };
			const left = 20 * bound - passed * priceOf(PROMPT, 2);
			expect(parseUsd(error.available_usd as string) as number).toBe(left);
			expect(left).toBeLessThan(bound);
			expect(error.held_usd).toBe("0.00");
			const affordable = Math.floor((left - priceOf(PROMPT, 0)) / 2_000);
			expect(error.affordable_max_tokens).toBe(affordable > 0 ? affordable : undefined);
			break;
		}
		expect(response.status).toBe(200);
		passed += 1;
	}
	expect(passed).toBe(Math.floor((20 * bound - bound) / priceOf(PROMPT, 2)) + 1);
	expect((await booksOf(accountId)).charged).toBe(passed * priceOf(PROMPT, 2));
	upstream.always(() => reply().text("a b c d e f g h").usage({ prompt: PROMPT, completion: OUTPUT }));
});
