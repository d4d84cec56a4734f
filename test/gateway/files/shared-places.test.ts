import { expect, test } from "bun:test";
import { forwardBody } from "../../../src/base/passed-body.ts";
import { openRaw, parseRaw, type RawClient, rawPost } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream();
const service = await withService({
	models: chatModel({ url: upstream.url }).replace("[chat, completions]", "[chat, completions, batch]"),
});
const LINES = '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}\n';
const FORM = [
	'--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
	`--x\r\ncontent-disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n${LINES}`,
	"\r\n--x--\r\n",
].join("");
const post = (secret: string) =>
	rawPost("/v1/files", secret, FORM, { connection: "close", "content-type": "multipart/form-data; boundary=x" });

test("a new upload takes the slot of an account with more uploads", async () => {
	const [first, ...others] = await Promise.all(Array.from({ length: 8 }, () => service.customer()));
	const unfinished: RawClient[] = [];
	for (const { secret } of [first, ...others] as { secret: string }[])
		for (let nth = 0; nth < 4; nth += 1) unfinished.push(await openRaw(service.url, post(secret).slice(0, -3)));
	await waitFor(
		async () => (await service.db.sql`select 1 from stored_file`).length === unfinished.length,
		"all uploads to begin",
	);
	const fifth = await openRaw(service.url, post(first?.secret ?? ""));
	expect(parseRaw(await fifth.ended()).status).toBe(429);
	const newcomer = await openRaw(service.url, post((await service.customer()).secret));
	expect(parseRaw(await newcomer.ended()).status).toBe(200);
	const answers = () => unfinished.map((client) => client.text()).filter((text) => text !== "");
	await waitFor(() => answers().length > 0, "the answer of the upload that lost its place");
	const answered = answers();
	expect(answered).toHaveLength(1);
	expect(parseRaw(answered[0] ?? "")).toMatchObject({ status: 503, body: expect.stringContaining("overloaded") });
	for (const client of unfinished) client.leave();
});

test("a download that loses its slot to another account ends with an error", async () => {
	const ended = new AbortController();
	const ends: string[] = [];
	let isCancelled = false;
	const source = new ReadableStream<Uint8Array>({
		pull: (controller) => controller.enqueue(new Uint8Array(1)),
		cancel() {
			isCancelled = true;
		},
	});
	const reader = forwardBody(source, () => ends.push("end"), ended.signal).getReader();
	expect((await reader.read()).done).toBe(false);
	ended.abort(new Error("lost its place"));
	await expect(reader.read().then(() => reader.read())).rejects.toThrow("lost its place");
	await reader.cancel().catch(() => {});
	expect([ends, isCancelled]).toEqual([["end"], true]);
});
