import { describe, expect, test } from "bun:test";
import OpenAI7 from "openai";
import { suspendAccount } from "../../../src/keys/account-admin.ts";
import { revokeKey } from "../../../src/keys/key-admin.ts";
import { LONG } from "../../support/long-form.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const MB = 1024 * 1024;
const upstream = withUpstream();
const model = chatModel({ url: upstream.url }).replace("[chat, completions]", "[chat, completions, batch]");
const service = await withService({ models: model, limits: "  file_mb: 5\n  files_account_mb: 12" });
const customer = await service.customer();

const LINES = '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}\n';

function formOf(fields: Record<string, string | Blob>): FormData {
	const form = new FormData();
	for (const [name, value] of Object.entries(fields)) {
		if (typeof value === "string") form.append(name, value);
		else form.append(name, value, "in.jsonl");
	}
	return form;
}
const fileOf = (text: string | Uint8Array<ArrayBuffer> = LINES) => new Blob([text]);

function ask(path: string, init: RequestInit = {}, secret = customer.secret): Promise<Response> {
	return fetch(`${service.url}${path}`, {
		...init,
		headers: { ...(init.headers as Record<string, string>), authorization: `Bearer ${secret}` },
	});
}
const upload = (fields: Record<string, string | Blob>, secret = customer.secret) =>
	ask("/v1/files", { method: "POST", body: formOf(fields) }, secret);
async function uploaded(text: string | Uint8Array<ArrayBuffer> = LINES, secret = customer.secret) {
	const response = await upload({ purpose: "batch", file: fileOf(text) }, secret);
	expect(response.status).toBe(200);
	return (await response.json()) as { id: string; expires_at: number; created_at: number };
}
const problemOf = async (response: Response) => {
	const { error } = (await response.json()) as { error: { code: string; param: string | null } };
	return [response.status, error.code, error.param];
};

for (const [name, SDK] of [
	["openai 7", OpenAI7],
	...(LONG ? [["openai 6", (await import("openai6")).default as unknown as typeof OpenAI7] as const] : []),
] as const) {
	test(`${name} creates, lists, reads and deletes files`, async () => {
		const { secret } = await service.customer();
		const client = new SDK({ apiKey: secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
		const made = [];
		for (const word of ["one", "two", "three"]) {
			const file = new File([LINES, word], `${word}.jsonl`);
			const lasting = word === "two" ? { expires_after: { anchor: "created_at", seconds: 3600 } as const } : {};
			made.push(await client.files.create({ file, purpose: "batch", ...lasting }));
		}
		const [first, second, third] = made;
		if (first === undefined || second === undefined || third === undefined) throw new Error("there are three");
		expect(first).toMatchObject({ object: "file", filename: "one.jsonl", purpose: "batch", bytes: LINES.length + 3 });
		const lastS = made.map(({ expires_at, created_at }) => (expires_at ?? 0) - created_at);
		expect(lastS).toEqual([30 * 24 * 3600, 3600, 30 * 24 * 3600]);
		const listed = [];
		for await (const file of client.files.list({ limit: 2, order: "asc", purpose: "batch" })) listed.push(file);
		expect(listed).toEqual(made);
		expect((await client.files.list()).data.map(({ id }) => id)).toEqual([third.id, second.id, first.id]);
		expect((await client.files.list({ purpose: "batch_output" })).data).toEqual([]);
		expect(await client.files.retrieve(second.id)).toEqual(second);
		expect(await (await client.files.content(second.id)).text()).toBe(`${LINES}two`);
		expect(await client.files.delete(second.id)).toEqual({ id: second.id, object: "file", deleted: true });
		expect(await client.files.retrieve(second.id).catch((error) => error)).toMatchObject({
			status: 404,
			code: "not_found",
		});
		expect((await client.files.list()).data.map(({ id }) => id)).toEqual([third.id, first.id]);
	});
}

test("the gateway accepts 18 concurrent uploads of one account", async () => {
	const { secret } = await service.customer();
	const file = fileOf(new Uint8Array(512 * 1024));
	const all = Array.from({ length: 18 }, () => upload({ purpose: "batch", file }, secret));
	expect((await Promise.all(all)).map(({ status }) => status)).toEqual(all.map(() => 200));
});

describe("an upload form", () => {
	test("may have its fields in any order", async () => {
		const response = await upload({
			"expires_after[seconds]": "7200",
			file: fileOf(),
			"expires_after[anchor]": "created_at",
			purpose: "batch",
		});
		const file = (await response.json()) as { id: string; created_at: number; expires_at: number };
		expect([response.status, file.expires_at - file.created_at]).toEqual([200, 7200]);
		await ask(`/v1/files/${file.id}`, { method: "DELETE" });
	});

	test.each([
		[{ purpose: "batch" }, "file"],
		[{ file: fileOf() }, "purpose"],
		[{ purpose: "assistants", file: fileOf() }, "purpose"],
		[{ file: fileOf(), purpose: "batch_output" }, "purpose"],
		[{ purpose: "batch", file: fileOf("") }, "file"],
		[{ purpose: "batch", file: fileOf(), "expires_after[seconds]": "7200" }, "expires_after[anchor]"],
		[
			{ purpose: "batch", file: fileOf(), "expires_after[anchor]": "created_at", "expires_after[seconds]": "60" },
			"expires_after[seconds]",
		],
	])("with the fields %o is refused with an error that names %s", async (fields, param) => {
		expect(await problemOf(await upload(fields as Record<string, string | Blob>))).toEqual([
			400,
			"invalid_request",
			param,
		]);
	});

	test("is refused if it is incomplete, compressed or JSON", async () => {
		const type = { "content-type": "multipart/form-data; boundary=b" };
		const whole = `--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${LINES}`;
		const post = (body: BodyInit, headers: Record<string, string>) =>
			ask("/v1/files", { method: "POST", body, headers });
		expect(await problemOf(await post("{}", { "content-type": "application/json" }))).toEqual([
			415,
			"unsupported_media_type",
			null,
		]);
		const packed = Bun.gzipSync(Buffer.from(whole));
		expect(await problemOf(await post(packed, { ...type, "content-encoding": "gzip" }))).toEqual([
			415,
			"unsupported_media_type",
			"content-encoding",
		]);
		for (const body of [whole, "", "--b\r\n\r\n", "--b\r\nx: y\r\n\r\n--b--"])
			expect((await problemOf(await post(body, type))).slice(0, 2)).toEqual([400, "invalid_request"]);
		expect((await post(`${whole}\r\n--b--\r\n`, type)).status).toBe(200);
	});
});

describe("storage space", () => {
	test("is limited per file, per account and by the number of files", async () => {
		const { secret, accountId } = await service.customer();
		const space = async () => {
			const [row] = await service.db.sql`select files, bytes::int from file_space where account_id = ${accountId}`;
			return row ?? { files: 0, bytes: 0 };
		};
		const chunked = (bytes: number) =>
			ask(
				"/v1/files",
				{
					method: "POST",
					headers: { "content-type": "multipart/form-data; boundary=b" },
					body: new Response(
						`--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${"x".repeat(bytes)}\r\n--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n`,
					).body,
				},
				secret,
			);
		const large = new Uint8Array(5 * MB);
		expect((await chunked(6 * MB)).status).toBe(413);
		expect((await upload({ purpose: "batch", file: fileOf(new Uint8Array(5 * MB + 1)) }, secret)).status).toBe(413);
		expect(await space()).toEqual({ files: 0, bytes: 0 });
		const [first] = [await uploaded(large, secret), await uploaded(large, secret)];
		expect(await problemOf(await upload({ purpose: "batch", file: fileOf(large) }, secret))).toEqual([
			409,
			"conflict",
			null,
		]);
		expect(await space()).toEqual({ files: 2, bytes: 10 * MB });
		await ask(`/v1/files/${first.id}`, { method: "DELETE" }, secret);
		expect(await space()).toEqual({ files: 1, bytes: 5 * MB });
		await service.db.sql`update file_space set files = 10000 where account_id = ${accountId}`;
		expect((await upload({ purpose: "batch", file: fileOf() }, secret)).status).toBe(409);
	});
});

describe("the bytes of a file", () => {
	test("are returned whole or as a range", async () => {
		const { id } = await uploaded("0123456789");
		const read = async (range?: string, headers: Record<string, string> = {}) => {
			const response = await ask(`/v1/files/${id}/content`, { headers: range ? { range, ...headers } : headers });
			const text = await response.text();
			return [response.status, response.headers.get("content-range"), response.status > 299 ? "" : text];
		};
		expect(await read()).toEqual([200, null, "0123456789"]);
		expect(await read("bytes=2-4")).toEqual([206, "bytes 2-4/10", "234"]);
		expect(await read("bytes=7-")).toEqual([206, "bytes 7-9/10", "789"]);
		expect(await read("bytes=-3")).toEqual([206, "bytes 7-9/10", "789"]);
		expect(await read("bytes=0-99")).toEqual([206, "bytes 0-9/10", "0123456789"]);
		expect(await read("bytes=10-")).toEqual([416, "bytes */10", ""]);
		for (const odd of ["bytes=1-2,4-5", "bytes=4-2", "lines=1-2", "bytes=-"]) expect((await read(odd))[0]).toBe(200);
		expect((await read("bytes=2-4", { "if-range": '"another"' }))[0]).toBe(200);
		expect((await read("bytes=2-4", { "if-range": `"${id}"` }))[0]).toBe(206);
		const { headers } = await ask(`/v1/files/${id}/content`);
		expect(Object.fromEntries(headers)).toMatchObject({
			"content-length": "10",
			"accept-ranges": "bytes",
			"x-content-type-options": "nosniff",
			"content-disposition": "attachment; filename=\"in.jsonl\"; filename*=UTF-8''in.jsonl",
		});
		await ask(`/v1/files/${id}`, { method: "DELETE" });
	});
});

test("occupy no download slot if their store is not configured", async () => {
	const { id } = await uploaded("0123456789");
	const [before] = await service.db.sql`select store from stored_file where id = ${id}`;
	const lieIn = (store: string) => service.db.sql`update stored_file set store = ${store} where id = ${id}`;
	const read = async () => (await problemOf(await ask(`/v1/files/${id}/content`)))[1];
	await lieIn("s3");
	for (let asked = 0; asked < 70; asked += 1) expect(await read()).toBe("service_unavailable");
	await lieIn(before?.store as string);
	expect(await (await ask(`/v1/files/${id}/content`)).text()).toBe("0123456789");
	await ask(`/v1/files/${id}`, { method: "DELETE" });
});

describe("a file", () => {
	const routes = (id: string): [string, RequestInit][] => [
		[`/v1/files/${id}`, {}],
		[`/v1/files/${id}/content`, {}],
		[`/v1/files/${id}`, { method: "DELETE" }],
	];

	test("is invisible to other accounts", async () => {
		const { id } = await uploaded();
		const stranger = await service.customer();
		for (const [path, init] of routes(id)) {
			const theirs = await ask(path, init, stranger.secret);
			const nobodys = await ask(path.replace(id, "file_0"), init, stranger.secret);
			expect([theirs.status, await theirs.text()]).toEqual([404, await nobodys.text()]);
		}
		const list = async (query: string) =>
			((await (await ask(`/v1/files?${query}`, {}, stranger.secret)).json()) as { data: unknown[] }).data;
		expect([await list(""), await list(`order=asc&after=${id}`)]).toEqual([[], []]);
		expect((await ask(`/v1/files/${id}`)).status).toBe(200);
		await ask(`/v1/files/${id}`, { method: "DELETE" });
	});

	test("is shared by all keys of its account", async () => {
		const { id } = await uploaded();
		const other = await service.key(customer.accountId);
		for (const [path, init] of routes(id)) expect((await ask(path, init, other.secret)).status).toBe(200);
	});

	test("is unreachable without a valid key", async () => {
		const { accountId, secret } = await service.customer();
		const revoked = await service.key(accountId);
		const { id } = await uploaded(LINES, secret);
		const every: [string, RequestInit][] = [
			...routes(id),
			["/v1/files", {}],
			["/v1/files", { method: "POST", body: formOf({ purpose: "batch", file: fileOf() }) }],
		];
		await revokeKey(service.db.statements, { id: revoked.id });
		await waitFor(async () => (await service.get("/v1/models", revoked.secret)).status === 401, "the revocation");
		const codes = async (key: string) =>
			new Set(await Promise.all(every.map(async ([path, init]) => (await problemOf(await ask(path, init, key)))[1])));
		expect(await codes(revoked.secret)).toEqual(new Set(["api_key_revoked"]));
		await suspendAccount(service.db.statements, accountId);
		await waitFor(async () => (await service.get("/v1/models", secret)).status === 403, "the suspension");
		expect(await codes(secret)).toEqual(new Set(["account_suspended"]));
		expect(await codes("sk_service_nobody")).toEqual(new Set(["invalid_api_key"]));
	});

	test("cannot be uploaded before the account's first top-up", async () => {
		const { secret } = await service.key(await service.account({ credit: null }));
		expect((await upload({ purpose: "batch", file: fileOf() }, secret)).status).toBe(402);
		expect((await ask("/v1/files", {}, secret)).status).toBe(200);
	});
});

test("the gateway refuses wrong methods and parameters of the list of files", async () => {
	for (const [path, method] of [
		["/v1/files", "PUT"],
		["/v1/files/file_1", "POST"],
		["/v1/files/file_1/content", "POST"],
	] as const)
		expect((await ask(path, { method })).status).toBe(405);
	for (const query of ["limit=0", "limit=x", "order=up", "after=../x"])
		expect((await ask(`/v1/files?${query}`)).status).toBe(400);
	for (const limit of ["1", "1000", "10000", "4294967296", "9007199254740993"])
		expect([limit, (await ask(`/v1/files?limit=${limit}&purpose=none`)).status]).toEqual([limit, 200]);
});
