import { expect, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { reply, type UpstreamServer, withUpstream } from "../support/upstream-server.ts";

const POISON = "poison";
const upstreams = [withUpstream(), withUpstream(), withUpstream(), withUpstream()];
for (const upstream of upstreams)
	upstream.decide((body) => (JSON.stringify(body).includes(POISON) ? reply().raw("") : reply()));
const [single, one, two, ill] = upstreams.map(({ url }) => url) as [string, string, string, string];
const pair = `${chatModel({ id: "pair", url: one })}\n      - { url: "${two}", model: served-name, dialect: openai }`;
const service = await withService({
	models: [["single", single] as const, ["ill", ill] as const]
		.map(([id, url]) => chatModel({ id, url }))
		.concat(pair)
		.join("\n"),
	limits: "  breaker_failures_in_row: 4\n  breaker_cool_s: 60",
});

const asker = (model: string) => async (customer: { secret: string }, text: string) =>
	(await service.chat(customer.secret, ask(text, { model }))).status;

async function statusOf(model: string, secret: string): Promise<unknown> {
	const { data } = await (await service.get("/v1/models", secret)).json();
	return data.find(({ id }: { id: string }) => id === model)?.status;
}

test.each([true, false])(
	"a request on which two servers fail twice must not be retried (streamed %p)",
	async (stream) => {
		const [bad, good] = [await service.customer(), await service.customer()];
		for (let round = 0; round < 6; round += 1) {
			// Rounds 0 and 5 are the first with their text. A first failure may be chance, so the answer does not forbid a
			// retry.
			const text = round < 5 ? POISON : `${POISON} again`;
			const response = await service.chat(bad.secret, ask(text, { model: "pair", stream }));
			const { status, error, headers } = await errorOf(response);
			expect([status, error.code]).toEqual([502, "upstream_error"]);
			expect([round, headers.get("x-should-retry")]).toEqual([round, round === 0 || round === 5 ? null : "false"]);
			for (let other = 0; other < 2; other += 1)
				expect((await service.chat(good.secret, ask("fine", { model: "pair" }))).status).toBe(200);
		}
		await expectUncharged(service, bad.accountId);
		expect(await statusOf("pair", good.secret)).toBe("connected");
	},
);

test("one customer's failures at a model's only server do not stop other customers", async () => {
	const [bad, good] = [await service.customer(), await service.customer()];
	const askAs = asker("single");
	for (let round = 0; round < 4; round += 1) expect(await askAs(bad, POISON)).toBe(502);
	expect(await askAs(bad, "fine")).toBe(503);
	expect([await statusOf("single", bad.secret), await statusOf("single", good.secret)]).toEqual([
		"unavailable",
		"connected",
	]);
	for (let round = 0; round < 20; round += 1) {
		expect(await askAs(good, "fine")).toBe(200);
		await askAs(bad, POISON);
	}
	expect(await askAs(good, "fine")).toBe(200);
	expect(await askAs(bad, "fine")).toBe(200);
});

test("lists of models show a server that fails for every customer as unavailable", async () => {
	const upstream = upstreams[3] as UpstreamServer;
	upstream.always(() => reply().errorStatus(500));
	const customers = [await service.customer(), await service.customer()];
	for (let round = 0; round < 4; round += 1) for (const one of customers) await asker("ill")(one, "fine");
	const secret = customers[0]?.secret as string;
	const refused = await service.chat(secret, ask("fine", { model: "ill" }));
	expect(await errorOf(refused)).toMatchObject({ status: 503, error: { code: "service_unavailable" } });
	expect(await statusOf("ill", secret)).toBe("unavailable");
	expect((await (await service.get("/status")).json()).models).toContainEqual(
		expect.objectContaining({ id: "ill", status: "unavailable" }),
	);
});
