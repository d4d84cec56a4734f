import { expect, test } from "bun:test";
import { openArchive } from "../../src/ledger/archive-place.ts";
import { localServer } from "../support/at-end.ts";

/** Simulates a faulty storage service, which answers every request with another page of a listing. */

let pages = 0;
let keys: (query: URLSearchParams) => readonly string[] = () => [];
const PAGES_MAX = 50;
const server = localServer((request) => {
	pages += 1;
	const rows = keys(new URL(request.url).searchParams).map((key) => `<Contents><Key>${key}</Key></Contents>`);
	const body = `<ListBucketResult><Name>books</Name><IsTruncated>${pages < PAGES_MAX}</IsTruncated>${rows.join("")}</ListBucketResult>`;
	return new Response(`<?xml version="1.0"?>${body}`, { headers: { "content-type": "application/xml" } });
});
const bucket = {
	...{ endpoint: server.url.href.replace(/\/$/, ""), bucket: "books", region: "us-east-1" },
	...{ accessKeyId: "id", secretAccessKey: "s" },
};
const place = openArchive({ bucket, prefix: "days/" });

test("the archive rejects a bucket listing that is endless or has foreign names", async () => {
	keys = () => ["days/a", "days/b"];
	await expect(place.names()).rejects.toThrow("not asked for");
	expect(pages).toBe(2);
	pages = 0;
	keys = (query) => (query.get("start-after") === "days/a" ? ["days/b"] : ["days/a"]);
	await expect(place.names()).rejects.toThrow("not asked for");
	expect(pages).toBe(3);
	pages = 0;
	keys = () => ["months/a"];
	await expect(place.names()).rejects.toThrow("not asked for");
	pages = PAGES_MAX - 2;
	keys = (query) => (query.has("start-after") ? ["days/b"] : ["days/a"]);
	expect(await place.names()).toEqual(["a", "b"]);
});
