import { beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { BytesLost, createS3Blobs } from "../../src/files/blob-store.ts";
import { localServer } from "../support/at-end.ts";
import { startObjectStorage } from "../support/object-storage.ts";

/** Whatever a bucket or its proxy answers, no file counts as lost and no other object is deleted. */

const storage = startObjectStorage();
/** Returns an answer that replaces the storage's answer; undefined for the storage's own answer. */
let says: (request: Request) => Response | undefined = () => undefined;
const server = localServer(async (request) => {
	const { pathname, search } = new URL(request.url);
	const { method, headers } = request;
	const body = method === "PUT" ? await request.bytes() : null;
	return says(request) ?? fetch(`${storage.url}${pathname}${search}`, { method, headers, body });
});
const store = createS3Blobs(
	{ clock: systemClock },
	{
		...{ endpoint: server.url.href.replace(/\/$/, ""), bucket: "files", region: "us-east-1" },
		...{ accessKeyId: "id", secretAccessKey: "s" },
	},
);
const bytes = new TextEncoder().encode("0123456789");

beforeEach(async () => {
	says = () => undefined;
	storage.objects.clear();
	await store.put("file_a", "0-x", bytes);
});

test("a stored file never counts as lost, whatever the object storage answers", async () => {
	const places: Record<string, () => Response> = {
		"a proxy without a way": () => new Response("<html>no route</html>", { status: 404 }),
		"a 404 without a word": () => new Response(null, { status: 404 }),
		"less than was asked for": () => new Response("01", { status: 206 }),
		"nothing at all": () => new Response(null, { status: 204 }),
		"more than was asked for": () => new Response("0123456789"),
		"a page of its own": () => new Response("<html>maintenance</html>"),
	};
	for (const [name, answer] of Object.entries(places)) {
		says = ({ url, method }) => (method === "GET" && !url.includes("list-type") ? answer() : undefined);
		const failure = await store.read("file_a", "0-x", 2, 6).catch((error: unknown) => error);
		expect([name, failure instanceof Error, failure instanceof BytesLost]).toEqual([name, true, false]);
		// A server that gives this answer to every request does not prove that the object is missing.
		says = ({ method }) => (method === "GET" ? answer() : undefined);
		const other = await store.read("file_a", "0-x", 2, 6).catch((error: unknown) => error);
		expect([name, other instanceof Error, other instanceof BytesLost]).toEqual([name, true, false]);
	}
	says = () => undefined;
	expect(await store.read("file_a", "0-x", 2, 6)).toEqual(bytes.slice(2, 6));
	await expect(store.read("file_a", "0-x", 2, 11)).rejects.toBeInstanceOf(BytesLost);
	await expect(store.read("file_a", "0", 2, 6)).rejects.toBeInstanceOf(BytesLost);
});

test("a stored file never counts as lost because the object storage refuses access", async () => {
	const refusal = "<Error><Code>AccessDenied</Code></Error>";
	says = ({ url, method }) => {
		if (method !== "GET") return undefined;
		return url.includes("list-type")
			? new Response(`<?xml version="1.0"?><ListBucketResult><Name>files</Name></ListBucketResult>`)
			: new Response(refusal, { status: 403, headers: { "content-type": "application/xml" } });
	};
	const failure = await store.read("file_a", "0-x", 2, 6).catch((error: unknown) => error);
	expect([failure instanceof Error, failure instanceof BytesLost]).toEqual([true, false]);
});

const deleted = (keys: Set<string>) => (request: Request) => {
	if (request.method !== "DELETE") return undefined;
	keys.add(decodeURIComponent(new URL(request.url).pathname));
	return new Response(null, { status: 204 });
};

test("the removal of a file ends although the storage goes on listing deleted objects", async () => {
	await store.put("file_a", "1-x", bytes);
	const keys = new Set<string>();
	says = deleted(keys);
	await expect(store.removeFile("file_a")).rejects.toThrow("still lists");
	expect(keys.size).toBe(2);
	says = () => undefined;
	await store.removeFile("file_a");
	expect(storage.objects.size).toBe(0);
});

test("the removal of a file deletes only its own objects, whatever the storage lists", async () => {
	await store.put("file_ab", "0-x", bytes);
	const keys = new Set<string>();
	says = (request) => {
		const url = new URL(request.url);
		if (!url.searchParams.has("list-type")) return deleted(keys)(request);
		const rows = [...storage.objects.keys()].map((key) => `<Contents><Key>${key.slice(6)}</Key></Contents>`);
		return new Response(`<?xml version="1.0"?><ListBucketResult><Name>files</Name>${rows.join("")}</ListBucketResult>`);
	};
	await expect(store.removeFile("file_a")).rejects.toThrow("not asked for");
	expect([...keys]).not.toContain("/files/tollgate/file_ab/0-x");
});
