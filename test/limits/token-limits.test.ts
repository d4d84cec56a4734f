import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { updateAccount } from "../../src/keys/account-admin.ts";
import { updateKey } from "../../src/keys/key-admin.ts";
import { ask, postJson, priceOf } from "../support/chat.ts";
import { secondGateway } from "../support/second-gateway.ts";
import { chatModel, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const upstream = withUpstream();
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${chatModel({ id: "narrow-model", url: upstream.url })}\n    tokens_per_minute: 1000`,
	limits: "  accounts: [{ tag: large, tokens_per_minute: 4000 }]",
});
const others = [await secondGateway(service), await secondGateway(service)];
const urlOf = (place: number, gateways: number) =>
	[service.url, ...others.map(({ url }) => url)][place % gateways] as string;

async function post(secret: string, body: unknown, url = service.url) {
	const response = await postJson(`${url}/v1/chat/completions`, secret, body);
	const answer = (await response.json()) as {
		error?: { message: string; code: string };
		usage?: Record<string, number>;
	};
	const header = (name: string) => response.headers.get(`x-ratelimit-${name}-tokens`);
	const left = [header("limit"), header("remaining"), /^(0|[12]m\d+|\d+)s$/.test(header("reset") ?? "")];
	return { status: response.status, headers: response.headers, left, answer };
}

test("an answer has OpenAI's headers for the token limit with the fewest tokens left", async () => {
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

test.each([1, 3])(
	"a burst on %d instances uses up exactly its token limit, then its credit",
	async (gateways) => {
		const size = ask("one two three", { max_tokens: 3 });
		const probe = await post((await service.customer()).secret, size);
		const { prompt_tokens: prompt = 0, completion_tokens: completion = 0 } = probe.answer.usage ?? {};
		const price = priceOf(prompt, completion);
		// Credit for 200 of 400 requests, but tokens for 150.
		const [credit, tokens] = [200 * price, 150 * (prompt + completion)];
		const { accountId, keyId, secret } = await service.customer({
			exactCredit: credit,
			settings: { tokensPerMinute: tokens },
		});
		const narrow = await service.customer({ settings: { tokensPerMinute: 1 } });
		const refusal = (await post(narrow.secret, size)).answer.error?.message ?? "";
		const bound = Number(/up to (\d+)/.exec(refusal)?.[1]) / (prompt + completion);
		const statuses: number[] = [];
		const burst = async (count: number) => {
			const sent = Array.from({ length: count }, (_, place) =>
				post(secret, size, urlOf(statuses.length + place, gateways)),
			);
			for (const { status } of await Promise.all(sent)) statuses.push(status);
		};
		const served = () => statuses.filter((status) => status === 200).length;
		/** Sends until the bound of one more request would not fit, then until all instances refuse. */
		async function exhaust(most: number): Promise<number> {
			await burst(400);
			await waitFor(async () => {
				await burst(1);
				return served() > most - bound;
			}, `nearly ${most} requests to be served`);
			for (let before = -1; served() > before; ) {
				before = served();
				await burst(3 * gateways);
			}
			return served();
		}
		const minute = () => Math.floor(Date.now() / 60_000);
		const beganIn = minute();
		const ofTokens = await exhaust(150);
		// In the next minute the tokens of this one count less and less.
		const slidMs = minute() === beganIn ? 0 : Date.now() % 60_000;
		expect(ofTokens).toBeLessThanOrEqual(150 * (1 + slidMs / 60_000));
		const entry = await updateKey(service.db.statements, { id: keyId }, { tokensPerMinute: null });
		await waitForAllInstances({ liveness: service.db.liveness, clock: systemClock }, entry, 20_000);
		const ofCredit = await exhaust(200);
		expect(ofCredit).toBeLessThanOrEqual(200);
		// 503: on a busy machine Postgres did not grant a share within its deadline.
		expect(statuses.filter((status) => ![200, 402, 429, 503].includes(status))).toEqual([]);
		await waitFor(async () => Number((await service.balance(accountId)).spent) === ofCredit * price, "all settlements");
		expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	},
	60_000,
);
