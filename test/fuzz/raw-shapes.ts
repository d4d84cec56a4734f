import type { Random } from "../support/random.ts";
import { mutated } from "./mutate.ts";

/** Requests that no client library sends: contradictory framing, endless headers, pipelines. */
export function rawShape(random: Random, secret: string): Uint8Array {
	const body = JSON.stringify({ model: "chat", messages: [{ role: "user", content: "hi" }] });
	const path = random.pick([
		"/v1/chat/completions",
		"/v1/embeddings",
		"/v1/models",
		"/livez",
		"/v1/audio/transcriptions",
	]);
	const auth = `Authorization: Bearer ${secret}\r\n`;
	const base = `POST ${path} HTTP/1.1\r\nHost: x\r\n${auth}Content-Type: application/json\r\n`;
	const plain = `${base}Content-Length: ${body.length}\r\n\r\n${body}`;
	const get = `GET /v1/models HTTP/1.1\r\nHost: x\r\n${auth}\r\n`;
	const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
	const long = random.int(1, 40_000);
	const shapes: readonly (() => string)[] = [
		() => `${base}Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(body)}0\r\n\r\n${get}`,
		() => `${base}Content-Length: 5\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
		() =>
			`${base}Content-Length: ${random.pick(["-1", "+5", "0x10", "5, 5", "1e3", " 5", "99999999999999999999", "NaN", ""])}\r\n\r\n${body}`,
		() =>
			`${base}Transfer-Encoding: ${random.pick(["chunked, chunked", "xchunked", "gzip, chunked", " chunked", "Chunked", "identity", "chunked\t", "\vchunked"])}\r\n\r\n${chunk(body)}0\r\n\r\n`,
		() => `${base}Transfer-Encoding : chunked\r\n\r\n${chunk(body)}0\r\n\r\n`,
		() =>
			`${base}Transfer-Encoding: chunked\r\n\r\n${random.pick(["-1", "ffffffffffffffff", "g", "", "5;x=y", "0x5", "5 ", " 5", "0".repeat(300)])}\r\n${body}\r\n0\r\n\r\n`,
		() => `${base}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}XX0\r\n\r\n`,
		() => `${base}Transfer-Encoding: chunked\r\n\r\n${chunk(body)}0\r\nX-Trailer: ${"t".repeat(long)}\r\n\r\n`,
		() => `${base}Transfer-Encoding: chunked\n\n${chunk(body)}0\n\n`,
		() => `${base}X-Long: ${"v".repeat(long)}\r\n\r\n`,
		() => `${base}${Array.from({ length: long % 3_000 }, (_, at) => `X-${at}: v\r\n`).join("")}\r\n`,
		() => `POST ${path}${"/a".repeat(long)} HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() => `POST ${path}?${"%".repeat(long % 500)}\0 HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() => `${base} folded: yes\r\n\tX: y\r\n\r\n`,
		() => `${base}X-Nul: a\0b\r\nX-Bad\x01: \x7f\r\n\r\n`,
		() => `${base}: no name\r\n\r\n`,
		() =>
			`GET ${random.pick(["*", "//", "http://[", "http://x:99999/", "/%00", "/%ff%fe", "/../../etc", "\\v1\\models", "/v1/usage/%00", "/v1/models/%c0%80"])} HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() =>
			`GET /v1/models HTTP/1.1\r\nHost: ${random.pick(["", "[", "a b", "x:y", "é", "x\r\nHost: y", "x".repeat(long), "x/../y", "@"])}\r\n${auth}\r\n`,
		() => `GET /v1/models HTTP/${random.pick(["0.9", "1.0", "2.0", "9.9", "1", "1.1.1", ""])}\r\n${auth}\r\n`,
		() =>
			`${random.pick(["TRACE", "CONNECT", "OPTIONS", "PRI", "DELETE", "get", "M-SEARCH", "X".repeat(long), ""])} ${path} HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
		() => `${base}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
		() =>
			`${base}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
		() =>
			`GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: ${random.pick(["Bearer", "Bearer  ", "Basic x", `Bearer ${"k".repeat(long)}`, "Bearer \xff\xfe", `Bearer ${secret},x`])}\r\n\r\n`,
		() => get.repeat(random.int(2, 30)),
		() => plain.repeat(random.int(2, 5)) + get,
		() => `${plain}garbage ${get}`,
		() => plain.slice(0, random.int(0, plain.length)),
		() => `\r\n\r\n\r\n${get}`,
	];
	const made = Buffer.from(random.pick(shapes)(), "latin1");
	return random.chance(0.3) ? mutated(made, random) : made;
}
