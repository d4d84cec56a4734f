import { localServer } from "./at-end.ts";

/**
 * The part of S3 that the service uses, in memory and without checks of signatures. `bun test/files/run.ts` tests real
 * storages.
 */
export function startObjectStorage() {
	const objects = new Map<string, Uint8Array<ArrayBuffer>>();
	function list(bucket: string, prefix: string): Response {
		const found = [...objects.keys()].filter((key) => key.startsWith(`${bucket}/${prefix}`)).sort();
		const rows = found.map(
			(key) =>
				`<Contents><Key>${key.slice(bucket.length + 1)}</Key><Size>${objects.get(key)?.length}</Size></Contents>`,
		);
		const body = `<ListBucketResult><Name>${bucket}</Name><KeyCount>${rows.length}</KeyCount><IsTruncated>false</IsTruncated>${rows.join("")}</ListBucketResult>`;
		return new Response(`<?xml version="1.0"?>${body}`, { headers: { "content-type": "application/xml" } });
	}

	function read(key: string, range: string | null): Response {
		const bytes = objects.get(key);
		const headers = { "content-type": "application/xml" };
		if (bytes === undefined) return new Response("<Error><Code>NoSuchKey</Code></Error>", { status: 404, headers });
		const match = /^bytes=(\d+)-(\d+)$/.exec(range ?? "");
		if (match === null) return new Response(bytes);
		return new Response(bytes.slice(Number(match[1]), Number(match[2]) + 1), { status: 206 });
	}

	const server = localServer(async (request) => {
		const url = new URL(request.url);
		const key = decodeURIComponent(url.pathname.slice(1));
		if (url.searchParams.has("list-type")) return list(key.replace(/\/$/, ""), url.searchParams.get("prefix") ?? "");
		if (request.method === "PUT") {
			objects.set(key, await request.bytes());
			return new Response(null, { headers: { etag: '"x"' } });
		}
		if (request.method === "DELETE") {
			objects.delete(key);
			return new Response(null, { status: 204 });
		}
		return read(key, request.headers.get("range"));
	});
	return { url: server.url.href.replace(/\/$/, ""), objects };
}
