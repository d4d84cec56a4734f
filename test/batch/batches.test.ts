import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import OpenAI6 from "openai6";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { waitFor } from "../support/wait.ts";
import { chatLine, isOver, withBatches } from "./batch-service.ts";

const batches = await withBatches();
const { service, upstream } = batches;

describe("a batch sent with OpenAI's library", () => {
	for (const [version, Client] of Object.entries({ 6: OpenAI6, 7: OpenAI })) {
		test(`runs from the upload to the download of answers with version ${version}`, async () => {
			const { secret, accountId } = await service.customer();
			const client = new Client({ baseURL: `${service.url}/v1`, apiKey: secret }) as OpenAI;
			const text = ["a", "b", "c"].map((id) => `${chatLine(id, `hello ${id}`)}\n`).join("");
			const file = await client.files.create({ file: new File([text], "in.jsonl"), purpose: "batch" });
			let batch = await client.batches.create({
				input_file_id: file.id,
				endpoint: "/v1/chat/completions",
				completion_window: "24h",
				metadata: { night: "1" },
			});
			expect(batch).toMatchObject({
				object: "batch",
				status: "validating",
				input_file_id: file.id,
				metadata: { night: "1" },
			});
			while (batch.status !== "completed") {
				expect(["validating", "in_progress", "finalizing"]).toContain(batch.status);
				await Bun.sleep(50);
				batch = await client.batches.retrieve(batch.id);
			}
			expect(batch.request_counts).toEqual({ total: 3, completed: 3, failed: 0 });
			expect(batch.error_file_id).toBeNull();
			const output = await (await client.files.content(batch.output_file_id as string)).text();
			const lines = output
				.trim()
				.split("\n")
				.map((line) => JSON.parse(line));
			expect(lines.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "b", "c"]);
			for (const { custom_id, response, error, id } of lines) {
				expect(error).toBeNull();
				expect(id).toStartWith("batch_req_");
				expect(response).toMatchObject({ status_code: 200, body: { object: "chat.completion", model: "test-model" } });
				expect(response.body.choices[0].message.content).toBe(`echo: hello ${custom_id}`);
			}
			const listed = [];
			for await (const one of client.batches.list({ limit: 1 })) listed.push(one.id);
			expect(listed).toEqual([batch.id]);

			await service.settled();
			const usage = await service.usage(accountId);
			expect(usage.map(({ batch_id, status, rate_card_id }) => [batch_id, status, rate_card_id])).toEqual(
				Array(3).fill([batch.id, 200, "test-model#batch@1"]),
			);
			const charged = usage.reduce((sum, { charged_nano_usd }) => sum + Number(charged_nano_usd), 0);
			const tokens = (name: string) => usage.reduce((sum, row) => sum + Number(row[name]), 0);
			expect(charged).toBe(tokens("prompt_tokens") * 500 + tokens("completion_tokens") * 1_000);
			expect(batch).toMatchObject({
				usage: { input_tokens: tokens("prompt_tokens"), output_tokens: tokens("completion_tokens") },
				cost_usd: (charged / 1e9).toString().padEnd(4, "0"),
			});
		}, 30_000);
	}
});

describe("the list of an account's batches", () => {
	test("is visible to all keys of this account only", async () => {
		const mine = await service.customer();
		const sibling = await service.key(mine.accountId);
		const stranger = await service.customer();
		const done = await batches.run(mine.secret, [chatLine("a")]);
		for (const secret of [mine.secret, sibling.secret]) {
			expect((await service.get(`/v1/batches/${done.id}`, secret)).status).toBe(200);
			expect(await (await service.get("/v1/batches", secret)).json()).toMatchObject({ data: [{ id: done.id }] });
		}
		const unknown = await (await service.get("/v1/batches/batch_0", stranger.secret)).json();
		for (const response of [
			await service.get(`/v1/batches/${done.id}`, stranger.secret),
			await batches.cancel(stranger.secret, done.id),
		]) {
			expect(response.status).toBe(404);
			expect(await response.json()).toEqual(unknown);
		}
		expect(await (await service.get("/v1/batches", stranger.secret)).json()).toMatchObject({ data: [] });
		const input = await batches.upload(mine.secret, [chatLine("a")]);
		const body = { input_file_id: input, endpoint: "/v1/chat/completions", completion_window: "24h" };
		const stolen = await service.post("/v1/batches", stranger.secret, body);
		expect([stolen.status, await stolen.json()]).toMatchObject([404, { error: { param: "input_file_id" } }]);
		expect((await service.get(`/v1/files/${done.output_file_id}/content`, stranger.secret)).status).toBe(404);
	});

	test("is refused to a missing or revoked key", async () => {
		const { accountId } = await service.customer();
		const { id, secret } = await service.key(accountId);
		const batch = await batches.run(secret, [chatLine("a")]);
		expect((await service.get("/v1/batches")).status).toBe(401);
		await revokeKey(service.db.statements, { id });
		await waitFor(async () => (await service.get("/v1/batches", secret)).status === 401, "the key to be refused");
		expect((await service.get(`/v1/batches/${batch.id}`, secret)).status).toBe(401);
		expect((await service.post("/v1/batches", secret, {})).status).toBe(401);
		expect((await batches.cancel(secret, batch.id)).status).toBe(401);
	});
});

describe("a request that creates a batch", () => {
	test("gets an error that names the wrong field", async () => {
		const { secret } = await service.customer();
		const file = await batches.upload(secret, [chatLine("a")]);
		const body = { input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h" };
		const cases: [object, number, string][] = [
			[{ ...body, input_file_id: "file_0" }, 404, "input_file_id"],
			[{ ...body, endpoint: "/v1/rerank" }, 400, "endpoint"],
			[{ ...body, completion_window: "1h" }, 400, "completion_window"],
			[{ ...body, metadata: { a: 1 } }, 400, "metadata.a"],
			[{ ...body, metadata: { ["x".repeat(65)]: "a" } }, 400, "metadata"],
			[{ ...body, output_expires_after: { anchor: "created_at", seconds: 1 } }, 400, "output_expires_after.seconds"],
		];
		for (const [wrong, status, param] of cases) {
			const response = await service.post("/v1/batches", secret, wrong);
			expect([response.status, (await response.json()).error.param]).toEqual([status, param]);
		}
		for (const limit of ["0", "101", "x"])
			expect((await service.get(`/v1/batches?limit=${limit}`, secret)).status).toBe(400);
	});

	test("creates one batch if it is repeated with its Idempotency-Key", async () => {
		const { secret } = await service.customer();
		const file = await batches.upload(secret, [chatLine("a")]);
		const body = { input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h" };
		const headers = { authorization: `Bearer ${secret}`, "idempotency-key": "once" };
		const made = await Promise.all([1, 2, 3].map(() => service.post("/v1/batches", secret, body, { headers })));
		const ids = await Promise.all(made.map(async (response) => (await response.json()).id));
		expect(new Set(ids).size).toBe(1);
		for (const other of [
			{ input_file_id: await batches.upload(secret, [chatLine("b")]) },
			{ metadata: { for: "another" } },
			{ endpoint: "/v1/completions" },
			{ output_expires_after: { anchor: "created_at", seconds: 3_600 } },
		]) {
			const refused = await service.post("/v1/batches", secret, { ...body, ...other }, { headers });
			expect([refused.status, (await refused.json()).error.code]).toEqual([422, "idempotency_mismatch"]);
		}
		await batches.until(secret, ids[0], isOver, "over");
		// Repeating the request after the input was deleted returns the same batch.
		await fetch(`${service.url}/v1/files/${file}`, { method: "DELETE", headers });
		const again = await service.post("/v1/batches", secret, body, { headers });
		expect([again.status, (await again.json()).id]).toEqual([200, ids[0]]);
		const other = await service.post("/v1/batches", secret, { ...body, metadata: { for: "another" } }, { headers });
		expect(other.status).toBe(422);
		// Even 40 days later the repeated request returns the same batch, as the documentation says.
		await service.db.sql`update batch set created_at = created_at - interval '40 days' where id = ${ids[0]}`;
		expect((await (await service.post("/v1/batches", secret, body, { headers })).json()).id).toBe(ids[0]);
		const document = await (await fetch(`${service.url}/openapi.json`)).json();
		const saidOf = (path: string): string =>
			document.paths[path].post.parameters.find(({ name }: { name: string }) => name === "Idempotency-Key").description;
		expect(saidOf("/v1/chat/completions")).toContain("for 24 hours");
		expect(saidOf("/v1/batches")).toContain("without a time limit");
	});
});

test("fails a batch with an invalid input file, names its lines and sends nothing", async () => {
	const { secret } = await service.customer();
	const before = upstream.requests.length;
	const batch = await batches.run(secret, [chatLine("a"), "{", chatLine("a")]);
	expect(batch).toMatchObject({
		status: "failed",
		output_file_id: null,
		error_file_id: null,
		errors: {
			object: "list",
			data: [
				{ code: "invalid_json_line", line: 2, param: null },
				{ code: "duplicate_custom_id", line: 3, param: "custom_id" },
			],
		},
	});
	expect(batch.failed_at).toBeNumber();
	expect(upstream.requests.length).toBe(before);
});
