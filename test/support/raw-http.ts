import { connect } from "node:net";
import { waitFor } from "./wait.ts";

/** Deadline of every wait, far above expected durations. */
const WAIT_MS = 20_000;

export type RawClient = Awaited<ReturnType<typeof openRaw>>;
export type RawResponse = ReturnType<typeof parseRaw>;

export async function openRaw(url: string, request: string | Uint8Array) {
	const { hostname, port } = new URL(url);
	const received: Buffer[] = [];
	let closed = false;
	const socket = connect({ host: hostname, port: Number(port), noDelay: true });
	socket.on("data", (bytes) => void received.push(Buffer.from(bytes)));
	socket.on("error", () => {});
	for (const end of ["close", "end"])
		socket.on(end, () => {
			closed = true;
		});
	await new Promise<void>((resolve, reject) => {
		socket.once("connect", () => resolve());
		socket.once("error", reject);
	});
	socket.write(request);
	const text = () => Buffer.concat(received).toString("utf8");
	return {
		text,
		/** Resolves with all received text once it contains `part`; rejects after the deadline. */
		async until(part: string, deadlineMs = WAIT_MS) {
			await waitFor(() => text().includes(part) || closed, `${JSON.stringify(part)} in ${text()}`, deadlineMs);
			if (!text().includes(part)) throw new Error(`closed before ${JSON.stringify(part)}: ${text()}`);
			return text();
		},
		/** Resolves with all received text once the server has closed the connection. */
		async ended(deadlineMs = WAIT_MS) {
			await waitFor(() => closed, "the server to close", deadlineMs);
			return text();
		},
		write: (data: string | Uint8Array) => void socket.write(data),
		stall: () => void socket.pause(),
		resume: () => void socket.resume(),
		/** Resets the connection, as the kernel does for a killed process. */
		leave: () => void socket.resetAndDestroy(),
	};
}

export function rawPost(path: string, secret: string, body: unknown, headers: Record<string, string> = {}): string {
	const text = typeof body === "string" ? body : JSON.stringify(body);
	const all: Record<string, string> = {
		host: "test.example",
		authorization: `Bearer ${secret}`,
		"content-type": "application/json",
		"content-length": String(Buffer.byteLength(text)),
		...headers,
	};
	const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
	return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${text}`;
}

/** Parses a response, whose body's chunks are joined. */
export function parseRaw(text: string) {
	const end = text.indexOf("\r\n\r\n");
	if (end < 0) throw new Error(`no whole header in ${JSON.stringify(text)}`);
	const [first = "", ...lines] = text.slice(0, end).split("\r\n");
	const headers = new Headers();
	for (const line of lines) headers.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim());
	const rest = text.slice(end + 4);
	const body = headers.get("transfer-encoding") === "chunked" ? joinChunks(rest) : rest;
	return { status: Number(first.split(" ")[1]), headers, body };
}

function joinChunks(text: string): string {
	const bytes = Buffer.from(text);
	let at = 0;
	let body = "";
	while (at < bytes.length) {
		const lineEnd = bytes.indexOf("\r\n", at);
		const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
		if (!(size > 0)) break;
		body += bytes.toString("utf8", lineEnd + 2, lineEnd + 2 + size);
		at = lineEnd + 2 + size + 2;
	}
	return body;
}

/** Parses all responses in `text`. Throws unless their framing is exact and no other bytes follow. */
export function answersIn(text: string): RawResponse[] {
	const bytes = Buffer.from(text);
	const answers: RawResponse[] = [];
	let at = 0;
	function line(): string {
		const end = bytes.indexOf("\r\n", at);
		if (end < 0) throw new Error(`a line without an end at ${at} of ${bytes.length}`);
		const found = bytes.toString("latin1", at, end);
		at = end + 2;
		return found;
	}
	function take(count: number): Buffer {
		if (at + count > bytes.length) throw new Error(`cut off at ${bytes.length}, ${at + count} were announced`);
		at += count;
		return bytes.subarray(at - count, at);
	}
	function chunks(): Buffer {
		const pieces: Buffer[] = [];
		for (;;) {
			const size = line();
			if (!/^[0-9a-f]+$/i.test(size)) throw new Error(`not the size of a chunk: ${JSON.stringify(size.slice(0, 80))}`);
			const piece = take(Number.parseInt(size, 16));
			if (line() !== "") throw new Error("a chunk is longer than its size");
			if (piece.length === 0) return Buffer.concat(pieces);
			pieces.push(piece);
		}
	}
	while (at < bytes.length) {
		const status = /^HTTP\/1\.1 (\d{3}) /.exec(line())?.[1];
		if (status === undefined) throw new Error(`no answer begins at ${at}`);
		const headers = new Headers();
		for (let field = line(); field !== ""; field = line())
			headers.append(field.slice(0, field.indexOf(":")), field.slice(field.indexOf(":") + 1).trim());
		const isChunked = headers.get("transfer-encoding") === "chunked";
		const body = isChunked ? chunks() : take(Number(headers.get("content-length") ?? Number.NaN));
		answers.push({ status: Number(status), headers, body: body.toString("utf8") });
	}
	return answers;
}

/** Parses the events of a stream's body: JSON, comments as `":"`, and `"[DONE]"`. Throws on anything else. */
export function eventsOf(body: string): unknown[] {
	return body
		.split("\n\n")
		.filter((event) => event !== "")
		.map((event) => {
			if (/^: ?$/.test(event)) return ":";
			if (event === "data: [DONE]") return "[DONE]";
			if (!/^data: \{[^\r\n]*\}$/.test(event))
				throw new Error(`not an event of the interface: ${JSON.stringify(event)}`);
			return JSON.parse(event.slice(6));
		});
}
