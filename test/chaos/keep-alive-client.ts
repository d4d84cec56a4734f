import { systemClock, withDeadline } from "../../src/base/clock.ts";
import { openConnection, type RawConnection } from "../bench/raw-connection.ts";

export interface Exchange {
	/** Status of the answer; 0 if the connection ended before. */
	readonly status: number;
	/** True if this was the connection's first request. */
	readonly fresh: boolean;
	/** True if the answer announced the end of the connection. */
	readonly last: boolean;
}

const DEADLINE_MS = 15_000;

/**
 * A client that uses one connection until the server ends it or sends `connection: close`, then opens another. It never
 * repeats a request, so each failure is visible.
 */
export function createKeepAliveClient(url: string) {
	const port = Number(new URL(url).port);
	let connection: RawConnection | undefined;
	let answer = Promise.withResolvers<string>();

	/** Sends a request and reads the whole answer. Never rejects. */
	async function ask(request: { method: string; path: string; secret: string; body?: string }): Promise<Exchange> {
		const fresh = connection?.isOpen() !== true;
		const body = request.body ?? "";
		const head = `${request.method} ${request.path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer ${request.secret}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
		try {
			answer = Promise.withResolvers();
			if (fresh)
				connection = await openConnection(port, {
					answered: (_, head) => answer.resolve(head),
					broke: (reason) => answer.reject(new Error(reason)),
				});
			connection?.send(Buffer.from(head + body));
			const answered = await withDeadline(systemClock, answer.promise, DEADLINE_MS, () => new Error("no answer"));
			const last = /\r\nconnection: close\r\n/i.test(answered);
			if (last) close();
			return { status: Number(answered.slice(9, 12)), fresh, last };
		} catch {
			close();
			return { status: 0, fresh, last: true };
		}
	}

	/** Closes the connection, so that the next request opens another one. */
	function close(): void {
		connection?.close();
		connection = undefined;
	}

	return { ask, close };
}
