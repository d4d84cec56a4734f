/** Clients that hang up: at once, while they wait, after the first event, in the middle. */
import { openConnection, type RawConnection } from "../bench/raw-connection.ts";

export interface Storm {
	readonly port: number;
	readonly connections: number;
	/** Streamed requests that last longer than any of the clients stays. */
	readonly requests: readonly Uint8Array[];
	readonly aborts: number;
}

const WAIT_MS_MAX = 4;
const BYTES_MAX = 3_000;
/** A stream that says nothing for so long is hung up all the same. */
const SILENT_MS = 5_000;

/** Gives how many requests were sent, each of them hung up on. */
export async function stormOf(storm: Storm, dice: (limit: number) => number): Promise<number> {
	let left = storm.aborts;
	let sent = 0;

	async function client(): Promise<void> {
		while (left > 0) {
			left -= 1;
			const over = Promise.withResolvers<void>();
			/** 0: does not wait for an answer; else so many bytes of it. */
			const bytes = dice(2) === 0 ? 0 : 1 + dice(BYTES_MAX);
			const waitMs = dice(WAIT_MS_MAX);
			let received = 0;
			const connection: RawConnection = await openConnection(storm.port, {
				body(piece) {
					received += piece.length;
					if (bytes > 0 && received >= bytes) over.resolve();
				},
				answered: () => over.resolve(),
				broke: () => over.resolve(),
			});
			connection.send(storm.requests[dice(storm.requests.length)] as Uint8Array);
			sent += 1;
			const timer = setTimeout(() => over.resolve(), bytes === 0 ? waitMs : SILENT_MS);
			await over.promise;
			clearTimeout(timer);
			connection.close();
		}
	}

	await Promise.all(Array.from({ length: storm.connections }, client));
	return sent;
}
