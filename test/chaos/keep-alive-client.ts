import type { Socket } from "bun";

export interface Exchange {
	/** 0: the connection ended before an answer. */
	readonly status: number;
	/** The first request of its connection. */
	readonly fresh: boolean;
	/** The answer announced the end of the connection. */
	readonly last: boolean;
}

const DEADLINE_MS = 15_000;

/**
 * A client that reuses one connection until the server ends it or sends `connection: close`, then opens another. It
 * never repeats a request, so each failure is visible.
 */
export function createKeepAliveClient(url: string) {
	const { hostname, port } = new URL(url);
	let connection: { socket: Socket<undefined>; fresh: boolean } | undefined;
	let received = "";
	let onChange = () => {};
	let ended = false;

	async function connect(): Promise<void> {
		received = "";
		ended = false;
		const socket = await Bun.connect({
			hostname,
			port: Number(port),
			socket: {
				data(_, bytes) {
					received += bytes.toString("latin1");
					onChange();
				},
				close() {
					ended = true;
					onChange();
				},
				error() {
					ended = true;
					onChange();
				},
			},
		});
		connection = { socket, fresh: true };
	}

	/** Sends a request and reads its whole answer. Never rejects. */
	async function ask(request: { method: string; path: string; secret: string; body?: string }): Promise<Exchange> {
		if (ended) connection = undefined;
		try {
			if (!connection) await connect();
		} catch {
			return { status: 0, fresh: true, last: true };
		}
		const { socket, fresh } = connection as NonNullable<typeof connection>;
		(connection as NonNullable<typeof connection>).fresh = false;
		received = "";
		const body = request.body ?? "";
		const head = `${request.method} ${request.path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer ${request.secret}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
		const whole = new Promise<boolean>((resolve) => {
			const timer = setTimeout(() => resolve(false), DEADLINE_MS);
			onChange = () => {
				if (!isWhole(received) && !ended) return;
				clearTimeout(timer);
				resolve(isWhole(received));
			};
		});
		socket.write(head + body);
		onChange();
		const answered = await whole;
		const status = answered ? Number(received.slice(9, 12)) : 0;
		const last = !answered || /\r\nconnection: close\r\n/i.test(received);
		if (last) {
			connection = undefined;
			socket.end();
		}
		return { status, fresh, last };
	}

	return {
		ask,
		/** The next request opens a connection. */
		close() {
			connection?.socket.end();
			connection = undefined;
		},
	};
}

function isWhole(text: string): boolean {
	const end = text.indexOf("\r\n\r\n");
	if (end < 0) return false;
	const head = text.slice(0, end + 2);
	const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
	if (length !== undefined) return text.length >= end + 4 + Number(length);
	return text.endsWith("\r\n0\r\n\r\n");
}
