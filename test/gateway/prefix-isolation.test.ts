import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { chatModel, withService } from "../support/service.ts";
import { limitsWith, modelOver } from "../support/upstream-catalog.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { CHAT_DIALECTS } from "../support/upstream-wire.ts";

const upstreams = new Map(CHAT_DIALECTS.map((dialect) => [dialect, withUpstream(dialect)]));
const modelOf = (dialect: DialectName, url: string, id: string, extra = "") => chatModel({ id, url, dialect, extra });
const service = await withService({
	models: [...upstreams]
		.flatMap(([dialect, { url }]) => [
			modelOf(dialect, url, dialect, "    isolate_prefixes: true"),
			modelOf(dialect, url, `${dialect}-shared`),
		])
		.join("\n"),
});
const customers = [await service.customer(), await service.customer()];

/** The cache salt that the gateway sends to the model's server. */
async function saltOf(model: string, nth: number, body: object): Promise<string | undefined> {
	const path = "messages" in body ? "/v1/chat/completions" : "/v1/completions";
	await (await service.post(path, customers[nth]?.secret as string, { model, ...body })).text();
	const upstream = upstreams.get(model.replace("-shared", "") as DialectName);
	return (upstream?.requests.at(-1)?.body as { cache_salt?: string } | undefined)?.cache_salt;
}

test.each(["messages", "prompt"])(
	"a request with `%s` gets an account's secret cache salt if its server takes one",
	async (field) => {
		const prompt = field === "prompt" ? { prompt: "hi" } : { messages: [{ role: "user", content: "hi" }] };
		for (const dialect of upstreams.keys())
			for (const stream of [false, true]) {
				const body = { ...prompt, stream };
				const salts = [await saltOf(dialect, 0, body), await saltOf(dialect, 0, body), await saltOf(dialect, 1, body)];
				if (dialect === "vllm" || dialect === "sglang") {
					expect(salts[0]).toMatch(/^[\w-]{43}$/);
					expect(salts).toEqual([salts[0], salts[0], expect.not.stringMatching(salts[0] as string)]);
				} else expect(salts).toEqual([undefined, undefined, undefined]);
				expect(await saltOf(`${dialect}-shared`, 0, body)).toBeUndefined();
			}
	},
);

test("an account's prompt has other cache hashes than another account's same prompt", () => {
	const { routed } = createUpstreams({ clock: systemClock, log: silentLog }, { limits: () => limitsWith({}) });
	const hashOf = (accountId: string, isolated: boolean) =>
		routed("x".repeat(2_000), modelOver([], isolated ? { isolatePrefixes: true } : {}), accountId, true).hashes[0];
	expect(hashOf("acc_one", false)).toBe(hashOf("acc_two", false) as number);
	expect(hashOf("acc_one", true)).toBe(hashOf("acc_one", true) as number);
	expect(hashOf("acc_one", true)).not.toBe(hashOf("acc_two", true) as number);
});
