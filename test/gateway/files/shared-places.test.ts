import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { forwardBody } from "../../../src/base/passed-body.ts";
import type { AppendedEntry } from "../../../src/cluster/control-log.ts";
import { waitForAllInstances } from "../../../src/cluster/wait-for-all-instances.ts";
import { suspendAccount } from "../../../src/keys/account-admin.ts";
import { revokeKey } from "../../../src/keys/key-admin.ts";
import { openRaw, parseRaw, type RawClient, rawPost } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream();
const service = await withService({
	models: chatModel({ url: upstream.url }).replace("[chat, completions]", "[chat, completions, batch]"),
});
const { statements, sql, liveness } = service.db;
const LINES = '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}\n';
const FORM = [
	'--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
	`--x\r\ncontent-disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n${LINES}`,
	"\r\n--x--\r\n",
].join("");
const CLOSING = { connection: "close" };
const OF_FORM = { ...CLOSING, "content-type": "multipart/form-data; boundary=x" };
const post = (secret: string) => rawPost("/v1/files", secret, FORM, OF_FORM);

test("a new upload takes the slot of an account with more uploads", async () => {
	const [first, ...others] = await Promise.all(Array.from({ length: 8 }, () => service.customer()));
	const unfinished: RawClient[] = [];
	for (const { secret } of [first, ...others] as { secret: string }[])
		for (let nth = 0; nth < 4; nth += 1) unfinished.push(await openRaw(service.url, post(secret).slice(0, -3)));
	await waitFor(
		async () => (await sql`select 1 from stored_file`).length === unfinished.length,
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

type Customer = Awaited<ReturnType<typeof service.customer>>;

const ACTS: [string, string, (customer: Customer) => Promise<AppendedEntry>][] = [
	["a revoked key", "api_key_revoked", ({ keyId }) => revokeKey(statements, { id: keyId })],
	["a suspended account", "account_suspended", ({ accountId }) => suspendAccount(statements, accountId)],
];

/** Sends a request without its end, revokes the right to send it, then sends the end. Returns the answer. */
async function answeredBehind(request: string, customer: Customer, act: (typeof ACTS)[number][2]): Promise<string> {
	const client = await openRaw(service.url, request.slice(0, -3));
	// The answer on this connection proves that the server has read the bytes sent before on the first connection.
	expect((await service.get("/v1/models", customer.secret)).status).toBe(200);
	if (request.includes(OF_FORM["content-type"]))
		await waitFor(
			async () => (await sql`select 1 from stored_file where account_id = ${customer.accountId}`).length > 0,
			"the upload to begin",
		);
	const { effective } = await waitForAllInstances({ liveness, clock: systemClock }, await act(customer), 10_000);
	expect(effective).toBe(true);
	client.write(request.slice(-3));
	const { status, body } = parseRaw(await client.ended());
	return status === 200 ? "done" : JSON.parse(body).error.code;
}

test.each(ACTS)("an upload in progress for %s is refused and creates no file", async (_, code, act) => {
	const customer = await service.customer();
	expect(await answeredBehind(rawPost("/v1/files", customer.secret, FORM, OF_FORM), customer, act)).toBe(code);
	expect(await sql`select id from stored_file where account_id = ${customer.accountId}`).toHaveLength(0);
});

test.each(ACTS)("a batch whose request body is still arriving for %s is not created", async (_, code, act) => {
	const customer = await service.customer();
	const uploaded = await openRaw(service.url, rawPost("/v1/files", customer.secret, FORM, OF_FORM));
	const { id } = JSON.parse(parseRaw(await uploaded.ended()).body) as { id: string };
	const wanted = { input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" };
	expect(await answeredBehind(rawPost("/v1/batches", customer.secret, wanted, CLOSING), customer, act)).toBe(code);
	expect(await sql`select id from batch where account_id = ${customer.accountId}`).toHaveLength(0);
});
