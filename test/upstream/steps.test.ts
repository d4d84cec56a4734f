import { expect, test } from "bun:test";
import { chatEvent } from "../support/raw-answer.ts";
import { chatCall, openChat } from "../support/upstream-catalog.ts";
import { UPSTREAM_SPEC, upstreamsOver } from "../support/upstream-set.ts";

const STEP_BYTES = 64 * 1024;

test("a megabyte that arrives in one read is parsed in steps of 64 KB", async () => {
	const words = Array.from({ length: 13_000 }, (_, nth) => `${nth} `);
	const events = words.map((content) => `data: ${JSON.stringify(chatEvent({ content }))}\n\n`).join("");
	const bytes = new TextEncoder().encode(`${events}data: ${JSON.stringify(chatEvent({}, "stop"))}\n\ndata: [DONE]\n\n`);
	const fetch = async (_: string, { method }: BunFetchRequestInit) =>
		method === "POST" ? new Response(bytes, { headers: { "content-type": "text/event-stream" } }) : new Response("{}");
	const { upstreams, model } = upstreamsOver([UPSTREAM_SPEC], { fetch });
	const stream = openChat(upstreams, model, chatCall());
	const text: string[] = [];
	let steps = 0;
	for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
		steps += 1;
		for (const { choices } of chunks) text.push(String(choices[0]?.delta.content ?? ""));
	}
	expect(text.join("")).toBe(words.join(""));
	expect(bytes.length).toBeGreaterThan(10 * STEP_BYTES);
	expect(steps).toBeGreaterThanOrEqual(Math.floor(bytes.length / STEP_BYTES));
});
