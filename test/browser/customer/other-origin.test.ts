import { expect, test } from "bun:test";
import { localServer, testsMayTake } from "../../support/at-end.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { hasChromium, launch } from "../chromium.ts";

/** An application on another origin calls the service from the browser, with the unmodified SDK. */

testsMayTake(120_000);

const upstream = withUpstream();
const service = await withService({ models: chatModel({ url: upstream.url }) });
const { secret } = await service.customer();

async function application(): Promise<string> {
	const built = await Bun.build({ entrypoints: [Bun.resolveSync("openai", import.meta.dir)], target: "browser" });
	const sdk = (await built.outputs[0]?.text()) ?? "";
	const html = { "content-type": "text/html" };
	const server = localServer(({ url }) =>
		new URL(url).pathname === "/sdk.js"
			? new Response(sdk, { headers: { "content-type": "text/javascript" } })
			: new Response("<!doctype html><title>app</title>", { headers: html }),
	);
	return `http://127.0.0.1:${server.port}`;
}

interface Sdk {
	default: typeof import("openai").default;
}

/** Runs inside the page, so it must not use variables of this file. */
async function useSdk({ baseURL, apiKey }: { baseURL: string; apiKey: string }) {
	const { default: OpenAI } = (await import(`${location.origin}/sdk.js`)) as Sdk;
	const client = new OpenAI({ apiKey, baseURL, dangerouslyAllowBrowser: true, maxRetries: 0 });
	const messages = [{ role: "user" as const, content: "hi" }];
	const models = (await client.models.list()).data.map(({ id }) => id);
	const { data, request_id: requestId } = await client.chat.completions
		.create({ model: "test-model", messages })
		.withResponse();
	let streamed = "";
	for await (const event of await client.chat.completions.create({ model: "test-model", messages, stream: true }))
		streamed += event.choices[0]?.delta.content ?? "";
	const refused = await client.chat.completions
		.create({ model: "none", messages })
		.catch((error) => ({ status: error.status, code: error.code, requestId: error.requestID }));
	const cookies = await fetch(`${baseURL}/models`, { credentials: "include" }).then(
		() => "answered",
		() => "blocked",
	);
	return { models, text: data.choices[0]?.message.content, requestId, streamed, refused, cookies };
}

test.skipIf(!hasChromium)("a page of another origin can call the gateway with the SDK", async () => {
	upstream.always(() => reply().text("Hello there."));
	const origin = await application();
	const browser = await launch();
	try {
		const page = await browser.newPage();
		await page.goto(origin);
		expect(await page.evaluate(useSdk, { baseURL: `${service.url}/v1`, apiKey: secret })).toEqual({
			models: ["test-model"],
			text: "Hello there.",
			requestId: expect.stringMatching(/^req_/),
			streamed: "Hello there.",
			refused: { status: 404, code: "model_not_found", requestId: expect.stringMatching(/^req_/) },
			cookies: "blocked",
		});
	} finally {
		await browser.close();
	}
});
