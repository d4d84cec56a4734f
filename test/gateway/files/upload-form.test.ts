import { describe, expect, test } from "bun:test";
import { openUploadForm } from "../../../src/gateway/files/upload-form.ts";
import { createManualClock } from "../../support/upstream-clock.ts";

const BOUNDARY = "edge";
const part = (disposition: string, body: string) =>
	`--edge\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${body}\r\n`;
const encoder = new TextEncoder();

function sender(bytesMax = 1_000_000) {
	const clock = createManualClock();
	let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
	const body = new ReadableStream<Uint8Array>({
		start(given) {
			controller = given;
		},
	});
	const request = new Request("http://x/", {
		method: "POST",
		body,
		headers: { "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
	});
	return {
		clock,
		form: openUploadForm(request, { clock, bytesMax }),
		send: (piece: string | Uint8Array) =>
			controller?.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece),
		end: () => controller?.close(),
		breakOff: () => controller?.error(new Error("gone")),
		isReleased: () => request.body?.locked === false,
	};
}
const failure = (work: Promise<unknown>) => work.then(() => undefined).catch((error) => error);
const textOf = async (bytes: AsyncIterable<Uint8Array>) => {
	const pieces: Uint8Array[] = [];
	for await (const piece of bytes) pieces.push(piece);
	return Buffer.concat(pieces).toString();
};

describe("an upload form with a file", () => {
	test("yields the same file however its chunks are split", async () => {
		const content = "one\r\n--edg\r--edge\r\n-\ntwo";
		const whole = `${part('name="purpose"', "batch")}${part('name="file"; filename="ü.jsonl"', content)}${part('name="more"', "x")}--edge--\r\n`;
		for (const size of [1, 2, 3, 7, 1000]) {
			const { form, send, end } = sender();
			const bytes = Buffer.from(whole);
			void (async () => {
				for (let at = 0; at < bytes.length; at += size) send(bytes.subarray(at, at + size));
				end();
			})();
			expect(await form.file()).toEqual({ filename: "ü.jsonl" });
			expect(await textOf(form.bytes())).toBe(content);
			expect(Object.fromEntries(await form.fields())).toEqual({ purpose: "batch", more: "x" });
		}
	});

	test("lets other requests run between its chunks, whether large or small", async () => {
		const MB = 1024 * 1024;
		for (const pieceBytes of [4 * MB, 64 * 1024, 1_000]) {
			const { form, send, end } = sender(16 * MB);
			send('--edge\r\ncontent-disposition: form-data; name="file"; filename="in"\r\n\r\n');
			for (let sent = 0; sent < 8 * MB; sent += pieceBytes) send(new Uint8Array(pieceBytes).fill(120));
			send("\r\n--edge--\r\n");
			end();
			let turns = 0;
			let isReading = true;
			const count = () => {
				turns += 1;
				if (isReading) setImmediate(count);
			};
			setImmediate(count);
			await form.file();
			let bytes = 0;
			for await (const piece of form.bytes()) bytes += piece.length;
			isReading = false;
			expect(bytes).toBeGreaterThanOrEqual(8 * MB);
			expect(turns).toBeGreaterThan(50);
		}
	});

	test("times out if it arrives below the minimum speed", async () => {
		const { form, send, clock } = sender(100_000_000);
		send(part('name="file"; filename="a"', "bytes").slice(0, -2));
		await form.file();
		const bytes = form.bytes();
		// The minimum speed applies after the first minute: 64 KB each second.
		for (let second = 0; second < 90; second += 1) {
			send("x".repeat(64_000));
			expect((await bytes.next()).done).toBe(false);
			clock.advance(1_000);
			await Bun.sleep(0);
		}
		const last = failure(textOf(bytes));
		await Bun.sleep(0);
		clock.advance(61_000);
		expect(await last).toMatchObject({ code: "request_timeout" });
	});

	test("times out after a minute if its bytes trickle in", async () => {
		const { form, send, clock } = sender();
		const waiting = failure(form.file());
		for (let second = 0; second < 61; second += 1) {
			send("-");
			clock.advance(1_000);
			await Bun.sleep(0);
		}
		expect(await waiting).toMatchObject({ code: "request_timeout" });
	});

	test("is refused if it is malformed, too large or too complex", async () => {
		const cut = sender();
		cut.breakOff();
		expect(await failure(cut.form.file())).toMatchObject({ code: "request_timeout" });

		const large = sender(100);
		large.send(part('name="file"; filename="a"', "x".repeat(200)));
		expect(await failure(large.form.file())).toMatchObject({ code: "payload_too_large" });

		for (const text of [
			Array.from({ length: 20 }, (_, index) => part(`name="f${index}"`, "x")).join(""),
			part('name="field"', "x".repeat(2_000)),
			`--edge\r\ncontent-disposition: form-data; name="file"; filename="a"\r\nx: ${"y".repeat(100_000)}`,
			part('name="file"; filename="a"', "x") + part('name="file"; filename="b"', "x"),
			part("filename*=UTF-8''%zz; name=\"file\"", "x"),
			"not a form at all",
		]) {
			const { form, send, end } = sender();
			send(text);
			end();
			const read = async () => {
				await form.file();
				await textOf(form.bytes());
				await form.fields();
			};
			expect(await failure(read())).toMatchObject({ code: "invalid_request" });
		}
	});

	test("releases the request's body when it is closed", () => {
		const { form, isReleased } = sender();
		expect(isReleased()).toBe(false);
		form.close();
		expect(isReleased()).toBe(true);
	});
});
