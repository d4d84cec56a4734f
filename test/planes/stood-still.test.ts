/** A gateway whose process or machine is paused, as during a live migration. */
import { expect, test } from "bun:test";
import { withProduct } from "../attack/product.ts";
import { ask } from "../support/chat.ts";
import { LONG } from "../support/long-form.ts";
import { requestsTo } from "../support/requests.ts";
import { chatModel } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

const SILENCE_S = 2;
const WORDS = 100;

const upstream = withUpstream();
upstream.always(() =>
	reply()
		.text(Array.from({ length: WORDS }, (_, at) => ` word${at}`))
		.trickle(50),
);

/** Pauses the gateway in the first or in the second period of the silence limit. */
test.each([...(LONG ? ["word2"] : []), "word45"])(
	"a stream continues after its gateway was paused at %s for longer than the limit",
	async (word) => {
		const product = await withProduct({
			models: chatModel({ url: upstream.url }),
			limits: `  silence_s: ${SILENCE_S}`,
		});
		const body = ask("x", { stream: true, max_tokens: 2 * WORDS });
		const answer = await requestsTo(product.url).chat(await product.secret("100"), body);
		const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
		const decoder = new TextDecoder();
		let text = "";
		const readUntil = async (isEnough: () => boolean) => {
			while (!isEnough()) {
				const { value, done } = await reader.read();
				if (done) return;
				text += decoder.decode(value, { stream: true });
			}
		};
		await readUntil(() => text.includes(word));
		product.serve.kill("SIGSTOP");
		// This test is about the pause, so it really waits.
		await Bun.sleep(SILENCE_S * 1_000 + 600);
		product.serve.kill("SIGCONT");
		await readUntil(() => false);
		expect([...text.matchAll(/ word(\d+)/g)].map(([, at]) => Number(at))).toEqual(
			Array.from({ length: WORDS }, (_, at) => at),
		);
		expect(text).toContain('"basis":"exact"');
		expect(text).toEndWith("data: [DONE]\n\n");
	},
	60_000,
);
