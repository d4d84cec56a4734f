import { describe, expect, test } from "bun:test";
import { acceptsGzip, compressResponse } from "../../src/console/pages/gzip.ts";

const LONG = JSON.stringify({ items: Array(200).fill({ name: "search-api production" }) });
const asked = (headers: Record<string, string> = { "accept-encoding": "gzip, br" }, method = "GET") =>
	new Request("http://service.test/api/console/keys", { method, headers });
const answer = (text = LONG, type = "application/json;charset=utf-8") =>
	new Response(text, { status: 201, headers: { "content-type": type } });

async function unpacked(response: Response): Promise<string> {
	expect(response.headers.get("content-encoding")).toBe("gzip");
	expect(response.headers.get("vary")).toBe("accept-encoding");
	return new TextDecoder().decode(Bun.gunzipSync(await response.bytes()));
}

describe("an answer of the console", () => {
	test("is compressed for clients that accept gzip, with status, headers and cookies", async () => {
		const plain = answer();
		for (const cookie of ["a=1", "b=2"]) plain.headers.append("set-cookie", cookie);
		const response = await compressResponse(asked(), plain);
		expect([response.status, response.headers.getSetCookie()]).toEqual([201, ["a=1", "b=2"]]);
		expect(await unpacked(response)).toBe(LONG);
	});

	test("stays uncompressed for other clients, or if it is small", async () => {
		for (const encoding of ["", "br", "gzip;q=0", "gzip; q=0.0", "x-gzipped"]) {
			const response = await compressResponse(asked({ "accept-encoding": encoding }), answer());
			expect([response.headers.get("content-encoding"), await response.text()]).toEqual([null, LONG]);
			// A shared cache must not send a compressed response to a client that cannot read it.
			expect(response.headers.get("vary")).toBe("accept-encoding");
		}
		const small = await compressResponse(asked(), answer("{}"));
		expect([small.headers.get("content-encoding"), await small.text()]).toEqual([null, "{}"]);
	});

	test("stays uncompressed if it answers a change, because it may contain a secret", async () => {
		const response = await compressResponse(asked(undefined, "POST"), answer());
		expect([response.headers.get("content-encoding"), await response.text()]).toEqual([null, LONG]);
	});

	test("is compressed if it is a printable page such as a receipt", async () => {
		expect(await unpacked(await compressResponse(asked(), answer(LONG, "text/html; charset=utf-8")))).toBe(LONG);
	});

	test("stays uncompressed if it is a stream", async () => {
		const stream = answer(LONG, "text/event-stream");
		expect(await compressResponse(asked(), stream)).toBe(stream);
	});
});

test("stays uncompressed if Accept-Encoding does not name gzip", () => {
	const takes = (encoding: string) => acceptsGzip(asked({ "accept-encoding": encoding }));
	expect(["gzip", "br, gzip", "gzip;q=0.5", "GZIP ; q=1.0"].map(takes)).toEqual([true, true, true, true]);
	expect(["", "br", "gzip;q=0", "x-gzip", "gzip2"].map(takes)).toEqual([false, false, false, false, false]);
});
