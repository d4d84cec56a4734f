/** Longer chunks are forwarded in pieces, so that at most one piece is unread when the body ends. */
const PIECE_BYTES = 64 * 1024;

/**
 * Forwards a body as it arrives. `onEnd` is called once, however the body ends. An error of the source reaches the
 * reader, so that a partial body is recognizable. If the reader cancels or `signal` aborts, the source is cancelled;
 * after an abort, the reader gets the signal's reason.
 */
export function forwardBody(
	body: ReadableStream<Uint8Array>,
	onEnd: () => void,
	signal?: AbortSignal,
): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	let over = false;
	let rest: Uint8Array | undefined;
	const end = () => {
		if (over) return;
		over = true;
		onEnd();
	};
	return new ReadableStream<Uint8Array>({
		start(controller) {
			signal?.addEventListener("abort", () => {
				if (over) return;
				end();
				controller.error(signal.reason);
				void reader.cancel(signal.reason).catch(() => {});
			});
		},
		async pull(controller) {
			try {
				const { done, value } = rest === undefined ? await reader.read() : { done: false, value: rest };
				if (over) return;
				// A caller may forward a stream of texts.
				const isLong = value instanceof Uint8Array && value.length > PIECE_BYTES;
				rest = isLong ? value.subarray(PIECE_BYTES) : undefined;
				if (!done) return controller.enqueue(isLong ? value.subarray(0, PIECE_BYTES) : value);
				end();
				controller.close();
			} catch (error) {
				if (over) return;
				end();
				controller.error(error);
			}
		},
		async cancel(reason) {
			end();
			await reader.cancel(reason);
		},
	});
}

/** True if the connection could not be established, so that nothing was sent. */
export function isConnectFailure(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return code === "ENOENT" || code === "ECONNREFUSED" || code === "ConnectionRefused";
}
