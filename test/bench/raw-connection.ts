/** A client of one HTTP/1.1 keep-alive connection, cheap enough not to affect the measurement. */
import type { Socket } from "bun";

export interface ConnectionHandlers {
	/** Called when the answer to the last request is complete. */
	answered(status: number, head: string): void;
	/** Called with a chunk of a body, without its framing. The bytes are valid only during the call. */
	body?(bytes: Buffer): void;
	/** Called if the connection ends while an answer is pending. */
	broke(reason: string): void;
}

export type RawConnection = Awaited<ReturnType<typeof openConnection>>;

type Phase = "head" | "fixed" | "chunk size" | "chunk" | "until close";

const NO_BYTES = Buffer.alloc(0);

export async function openConnection(port: number, handlers: ConnectionHandlers) {
	let phase: Phase = "head";
	let carry: Buffer = NO_BYTES;
	let remaining = 0;
	let head = "";
	let isOpen = true;
	let due = false;
	let unsent: Uint8Array | undefined;

	function complete(): void {
		phase = "head";
		due = false;
		handlers.answered(Number(head.slice(9, 12)), head);
	}

	function startBody(): void {
		const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
		if (length !== undefined) {
			remaining = Number(length);
			phase = "fixed";
			if (remaining === 0) complete();
		} else phase = /\r\ntransfer-encoding: *chunked/i.test(head) ? "chunk size" : "until close";
	}

	/** Parses one step from `at`. Returns the next position, or -1 if more bytes are needed. */
	function step(view: Buffer, at: number): number {
		if (phase === "head") {
			const end = view.indexOf("\r\n\r\n", at);
			if (end === -1) return -1;
			head = view.toString("latin1", at, end + 2);
			startBody();
			return end + 4;
		}
		if (phase === "chunk size") {
			const end = view.indexOf("\r\n", at);
			if (end === -1) return -1;
			const size = Number.parseInt(view.toString("latin1", at, end), 16);
			if (size > 0) {
				remaining = size;
				phase = "chunk";
				return end + 2;
			}
			if (view.length < end + 4) return -1;
			complete();
			return end + 4;
		}
		if (phase === "until close") {
			handlers.body?.(view.subarray(at));
			return view.length;
		}
		const now = Math.min(remaining, view.length - at);
		if (now > 0) handlers.body?.(view.subarray(at, at + now));
		remaining -= now;
		if (remaining > 0) return at + now;
		if (phase === "fixed") complete();
		else {
			// Waits for the line break that follows the chunk.
			if (view.length < at + now + 2) return -2 - (at + now);
			phase = "chunk size";
			return at + now + 2;
		}
		return at + now;
	}

	function take(bytes: Buffer): void {
		const view = carry.length > 0 ? Buffer.concat([carry, bytes]) : bytes;
		carry = NO_BYTES;
		let at = 0;
		while (at < view.length) {
			const next = step(view, at);
			if (next >= 0) at = next;
			else {
				carry = Buffer.from(view.subarray(next === -1 ? at : -2 - next));
				return;
			}
		}
	}

	function write(socket: Socket, bytes: Uint8Array): void {
		const taken = Math.max(0, socket.write(bytes));
		unsent = taken < bytes.length ? bytes.subarray(taken) : undefined;
	}

	function ended(reason: string): void {
		isOpen = false;
		if (phase === "until close" && due) complete();
		else if (due) {
			due = false;
			handlers.broke(reason);
		}
	}

	const socket = await Bun.connect({
		hostname: "127.0.0.1",
		port,
		socket: {
			open: (opened) => void opened.setNoDelay(true),
			data: (_, bytes) => take(bytes),
			drain(drained) {
				if (unsent !== undefined) write(drained, unsent);
			},
			close: () => ended("the connection was closed"),
			error: (_, error) => ended(error.message),
		},
	});
	return {
		/** Sends one request, head and body. Call it after the previous answer. */
		send(request: Uint8Array) {
			due = true;
			write(socket, request);
		},
		/** False once the server has closed the connection. */
		isOpen: () => isOpen,
		close() {
			due = false;
			socket.terminate();
		},
	};
}

export function chatRequestBytes(server: { readonly port: number }, secret: string, body: string): Buffer {
	const head = [
		"POST /v1/chat/completions HTTP/1.1",
		`host: 127.0.0.1:${server.port}`,
		`authorization: Bearer ${secret}`,
		"content-type: application/json",
		`content-length: ${Buffer.byteLength(body)}`,
	].join("\r\n");
	return Buffer.from(`${head}\r\n\r\n${body}`);
}
